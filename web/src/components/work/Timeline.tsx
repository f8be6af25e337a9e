import { useState } from "preact/hooks";
import type { RunModel } from "../../run";
import type { TextPart, Turn } from "../../parts";
import { texts } from "../../texts";
import { Duration } from "./Duration";
import { Totals } from "./Totals";
import { TurnView } from "./TurnView";
import { useProgressiveCount } from "./progressive";

interface Shown {
  run: RunModel;
  version: number;
}

/** The work of the team, collapsed; while the run is in progress, only active members are shown. */
export function Timeline({ run, version }: Shown) {
  const [isOpen, setOpen] = useState(false);
  const atWork = run.isAtWork ? run.turns.filter((turn) => turn.isOpen) : [];
  const hasWork = run.turns.some((turn) => isWorthShowing(turn, run.answer));
  if (!hasWork && atWork.length === 0) return null;
  const outage = atWork.findLast((turn) => turn.outage)?.outage;
  return (
    <>
      {outage && <p class="notice" role="status">{texts.modelGone(outage.attempt, Math.round(outage.left))}</p>}
      <details class="work" open={isOpen} onToggle={(e) => setOpen(e.currentTarget.open)}>
        <summary>
          <span>{texts.work}</span>
          {atWork.length > 0 && (
            <span class="now">
              <span class="pulse" aria-hidden="true" /> {texts.working}:{" "}
              {atWork.map((turn, index) => (
                <span key={turn.id}>
                  {index > 0 && ", "}
                  {turn.agent} {atWork.length > 1 && turn.step && <span class="step">{turn.step.title}</span>} <Duration begun={turn.begun} ended={turn.ended} isOpen />
                </span>
              ))}
            </span>
          )}
        </summary>
        {isOpen && <Work run={run} version={version} />}
      </details>
    </>
  );
}

function Work({ run, version }: Shown) {
  const [member, setMember] = useState<string | null>(null);
  const visibleTurns = run.turns.filter((turn) => isWorthShowing(turn, run.answer));
  const turns = member === null ? visibleTurns : visibleTurns.filter((turn) => turn.agent === member);
  let left = useProgressiveCount(turns.reduce((sum, turn) => sum + turn.parts.length, 0));
  return (
    <>
      <Totals run={run} version={version} members={[...new Set(visibleTurns.map((turn) => turn.agent))]} chosen={member} onChoice={setMember} />
      <ol class="turns">
        {turns.map((turn) => {
          const shown = Math.max(0, Math.min(left, turn.parts.length));
          left -= turn.parts.length;
          const isLive = run.isAtWork && turn.isOpen;
          return shown > 0 && <TurnView key={turn.id} turn={turn} version={turn.version} shown={shown} answer={run.answer} isLive={isLive} />;
        })}
      </ol>
    </>
  );
}

function isWorthShowing(turn: Turn, answer: TextPart | null): boolean {
  return turn.parts.some((part) => part !== answer && (turn.agent !== "planner" || part.kind !== "text" || part.reasoning));
}
