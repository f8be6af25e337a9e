import type { Step } from "../../events";
import type { Call, TextPart, Turn } from "../../parts";
import { RUNS_CODE } from "../../results";
import { texts } from "../../texts";
import { Markdown } from "../chat/Markdown";
import { CallView } from "../work/CallView";

/** The newest ended turn of a step that is over; undefined if there is none. */
export function outcomeOf(turns: readonly Turn[], { id, status }: Step): Turn | undefined {
  const isOver = status === "completed" || status === "failed";
  return isOver ? turns.findLast((turn) => turn.step?.id === id && !turn.isOpen) : undefined;
}

/** What came out of a step: the programs that ran, with their output, and the result of its member. */
export function StepOutcome({ turn }: { turn: Turn; version: number }) {
  const programs = turn.parts.filter((part): part is Call => part.kind === "call" && RUNS_CODE.has(part.tool));
  const result = turn.parts.findLast((part): part is TextPart => part.kind === "text" && part.content !== "");
  if (programs.length === 0 && !result) return null;
  return (
    <section class="outcome" aria-label={texts.outcome}>
      {programs.map((call) => (
        <CallView key={call.id} call={call} version={call.version} isLive={false} isNewest={call === programs.at(-1)} />
      ))}
      {result && <Markdown text={result.content} isWritten />}
    </section>
  );
}
