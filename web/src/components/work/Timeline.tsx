import { useCallback, useState } from "preact/hooks";
import { dutyOf } from "../../members";
import type { RunModel } from "../../run";
import type { TextPart, Turn } from "../../parts";
import { labelled, texts } from "../../texts";
import { Duration } from "./Duration";
import { Totals } from "./Totals";
import { TurnView } from "./TurnView";
import { useProgressiveCount } from "./progressive";

/** How many parts of each turn are shown while its member works. */
const NEWEST_PARTS = 4;

interface Shown {
  run: RunModel;
  version: number;
  /** Whether all the work is unfolded, unless the user folds it. */
  isWatched?: boolean;
}

/** The work of the team. While the run works, the members at work are unfolded, unless the user folds them. */
export function Timeline({ run, version, isWatched = false }: Shown) {
  const [chosen, setChosen] = useState<boolean | null>(null);
  const onAll = useCallback(() => setChosen(true), []);
  const atWork = run.isAtWork ? run.turns.filter((turn) => turn.isOpen) : [];
  const hasWork = run.turns.some((turn) => isWorthShowing(turn, run.answer));
  if (!hasWork && atWork.length === 0) return null;
  const showsAll = chosen ?? isWatched;
  const isOpen = chosen ?? (isWatched || atWork.length > 0);
  const toggle = (event: Event) => (event.preventDefault(), setChosen(!isOpen));
  return (
    <details class="work" open={isOpen}>
      <summary onClick={toggle}>
        <span>{texts.work}</span>
        {atWork.length > 0 && (
          <span class="now">
            <span class="pulse" aria-hidden="true" /> {labelled(texts.working, "")}
            {atWork.map((turn, index) => (
              <span key={turn.id}>
                {index > 0 && ", "}
                <span title={dutyOf(turn.agent)}>{turn.agent}</span> {atWork.length > 1 && turn.step && <span class="step">{turn.step.title}</span>} <Duration begun={turn.begun} ended={turn.ended} isOpen />
              </span>
            ))}
          </span>
        )}
      </summary>
      {showsAll && <Work run={run} version={version} />}
      {isOpen && !showsAll && <AtWork turns={atWork} answer={run.answer} onAll={onAll} />}
    </details>
  );
}

interface AtWorkShown {
  turns: Turn[];
  answer: TextPart | null;
  onAll: () => void;
}

/** The turns of the members at work, each with the newest of what it did. */
function AtWork({ turns, answer, onAll }: AtWorkShown) {
  return (
    <ol class="turns">
      {turns.map((turn) => (
        <TurnView key={turn.id} turn={turn} version={turn.version} skipped={turn.parts.length - NEWEST_PARTS} shown={NEWEST_PARTS} answer={answer} isLive onAll={onAll} />
      ))}
    </ol>
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
