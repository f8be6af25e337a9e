import { memo } from "preact/compat";
import { lasted } from "../../clock";
import { dutyOf } from "../../members";
import type { TextPart, Turn } from "../../parts";
import { texts } from "../../texts";
import { Markdown } from "../chat/Markdown";
import { CallView } from "./CallView";
import { DecisionView } from "./DecisionView";
import { Duration } from "./Duration";
import { PauseView } from "./PauseView";

interface Props {
  turn: Turn;
  version: number;
  /** The number of its first parts that are not shown; those with `onAll` can be seen by a button. */
  skipped?: number;
  /** The number of its parts that are shown so far. */
  shown: number;
  answer: TextPart | null;
  isLive: boolean;
  onAll?: () => void;
}

/** One turn of a member: its texts and tool calls. */
export const TurnView = memo(function TurnView({ turn, skipped = 0, shown, answer, isLive, onAll }: Props) {
  const first = Math.max(0, skipped);
  const last = turn.parts.findLast((part) => part.kind === "text");
  const newest = isLive ? turn.parts.findLast((part) => part.kind === "call") : undefined;
  return (
    <li class="turn">
      <h3>
        <span class="member" title={dutyOf(turn.agent)}>{turn.agent}</span> {turn.step && <span class="step">{turn.step.title}</span>}
        <Figures turn={turn} isLive={isLive} />
      </h3>
      {first > 0 && <button class="whole" onClick={onAll}>{texts.earlierParts(first)}</button>}
      {turn.parts.slice(first, first + shown).map((part, at) => {
        const index = first + at;
        if (part.kind === "call") return <CallView key={index} call={part} version={part.version} isLive={isLive} isNewest={part === newest} />;
        if (part.kind === "decision") return <DecisionView key={index} decision={part.decision} />;
        if (part.kind === "pause") return <PauseView key={index} pause={part} version={part.version} />;
        const isResult = part === last && !turn.isOpen;
        return part === answer ? null : (
          <TextView key={index} text={part} version={part.version} isPlan={turn.agent === "planner"} isResult={isResult} />
        );
      })}
    </li>
  );
});

function Figures({ turn, isLive }: { turn: Turn; isLive: boolean }) {
  return (
    <span class="figures">
      {turn.begun === null && turn.seconds > 0 ? <span>{lasted(turn.seconds)}</span> : null}
      <Duration begun={turn.begun} ended={turn.ended} isOpen={isLive} />
      {turn.tokens > 0 && <span>{`${turn.tokens.toLocaleString()} ${texts.tokens}`}</span>}
    </span>
  );
}

interface TextProps {
  text: TextPart;
  version: number;
  isPlan: boolean;
  /** Whether it is the member's result, which is rendered as Markdown; other texts are plain. */
  isResult: boolean;
}

const TextView = memo(function TextView({ text, isPlan, isResult }: TextProps) {
  return (
    <>
      {text.reasoning && <p class="thought">{text.reasoning}</p>}
      {/* The planner's text is the plan, which is shown separately. */}
      {text.content && !isPlan && (isResult ? <Markdown text={text.content} isWritten /> : <p class="said">{text.content}</p>)}
      {text.isReplaced && <p class="notice">{texts.brokeOff}</p>}
      {text.isOutdated && <p class="notice">{texts.outdated}</p>}
    </>
  );
});
