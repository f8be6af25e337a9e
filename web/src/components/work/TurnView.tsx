import { memo } from "preact/compat";
import { lasted } from "../../clock";
import type { Said, Turn } from "../../turns";
import { words } from "../../words";
import { Markdown } from "../chat/Markdown";
import { CallView } from "./CallView";
import { Lasts } from "./Lasts";
import { WaitedView } from "./WaitedView";

interface Told {
  turn: Turn;
  version: number;
  /** How many of its parts are shown by now. */
  shown: number;
  answer: Said | null;
  isLive: boolean;
}

/** What one member did in one go: what it said, and the tools that it called. */
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
      <Lasts begun={turn.begun} ended={turn.ended} isOpen={isLive} />
      {turn.tokens > 0 && <span>{`${turn.tokens.toLocaleString()} ${words.tokens}`}</span>}
    </span>
  );
}

interface SaidTold {
  said: Said;
  version: number;
  isPlan: boolean;
  /** Whether it is what the member came to, which is laid out; what it says on the way stays as it is. */
  isResult: boolean;
}

const SaidView = memo(function SaidView({ said, isPlan, isResult }: SaidTold) {
  return (
    <>
      {said.reasoning && <p class="thought">{said.reasoning}</p>}
      {/* What the planner says is the plan, which is shown as one. */}
      {said.content && !isPlan && (isResult ? <Markdown text={said.content} isWritten /> : <p class="said">{said.content}</p>)}
    </>
  );
});
