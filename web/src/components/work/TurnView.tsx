import { memo } from "preact/compat";
import { lasted } from "../../clock";
import type { Said, Turn } from "../../turns";
import { words } from "../../words";
import { Markdown } from "../chat/Markdown";
import { CallView } from "./CallView";
import { DecisionView } from "./DecisionView";
import { Duration } from "./Duration";
import { WaitedView } from "./WaitedView";

interface Told {
  turn: Turn;
  version: number;
  /** The number of its parts that are shown so far. */
  shown: number;
  answer: Said | null;
  isLive: boolean;
}

/** One turn of a member: its texts and tool calls. */
export const TurnView = memo(function TurnView({ turn, shown, answer, isLive }: Told) {
  const last = turn.parts.findLast((part) => part.kind === "said");
  return (
    <li class="turn">
      <h3>
        <span class="member">{turn.agent}</span> {turn.step && <span class="step">{turn.step.title}</span>}
        <Figures turn={turn} isLive={isLive} />
      </h3>
      {turn.parts.slice(0, shown).map((part, index) => {
        if (part.kind === "call") return <CallView key={index} call={part} version={part.version} isLive={isLive} />;
        if (part.kind === "decided") return <DecisionView key={index} decision={part.decision} />;
        if (part.kind === "waited") return <WaitedView key={index} waited={part} version={part.version} />;
        const isResult = part === last && !turn.isOpen;
        return part === answer ? null : (
          <SaidView key={index} said={part} version={part.version} isPlan={turn.agent === "planner"} isResult={isResult} />
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
      {turn.tokens > 0 && <span>{`${turn.tokens.toLocaleString()} ${words.tokens}`}</span>}
    </span>
  );
}

interface SaidTold {
  said: Said;
  version: number;
  isPlan: boolean;
  /** Whether it is the member's result, which is rendered as Markdown; other texts are plain. */
  isResult: boolean;
}

const SaidView = memo(function SaidView({ said, isPlan, isResult }: SaidTold) {
  return (
    <>
      {said.reasoning && <p class="thought">{said.reasoning}</p>}
      {/* The planner's text is the plan, which is shown separately. */}
      {said.content && !isPlan && (isResult ? <Markdown text={said.content} isWritten /> : <p class="said">{said.content}</p>)}
      {said.isReplaced && <p class="notice">{words.brokeOff}</p>}
      {said.isOutdated && <p class="notice">{words.outdated}</p>}
    </>
  );
});
