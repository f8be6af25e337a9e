import { memo } from "preact/compat";
import { useState } from "preact/hooks";
import type { RunModel, Said, Turn } from "../../run";
import { words } from "../../words";
import { CallView } from "./CallView";
import { Picture } from "./Picture";

/** What the team did, folded away: an open run shows only who is at work. */
export function Timeline({ run }: { run: RunModel; version: number }) {
  const [isOpen, setOpen] = useState(false);
  const turns = run.turns.filter((turn) => worthTelling(turn, run.answer));
  const atWork = run.isAtWork ? run.turns.findLast((turn) => turn.isOpen) : undefined;
  if (turns.length === 0 && !atWork) return null;
  return (
    <details class="work" open={isOpen} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        {words.work}
        {atWork && (
          <span class="now">
            <span class="pulse" aria-hidden="true" /> {words.working}: {atWork.agent}
          </span>
        )}
      </summary>
      {isOpen && (
        <>
          {run.browser && <BrowserNow {...run.browser} />}
          <ol>
            {turns.map((turn) => (
              <TurnView key={turn.id} turn={turn} version={turn.version} answer={run.answer} />
            ))}
          </ol>
        </>
      )}
    </details>
  );
}

function worthTelling(turn: Turn, answer: Said | null): boolean {
  return turn.parts.some((part) => part !== answer && (turn.agent !== "planner" || part.kind === "call" || part.reasoning));
}

interface Told {
  turn: Turn;
  version: number;
  answer: Said | null;
}

const TurnView = memo(function TurnView({ turn, answer }: Told) {
  const figures = turn.tokens > 0 ? `${turn.tokens.toLocaleString()} ${words.tokens}, ${turn.seconds.toFixed(1)} s` : "";
  return (
    <li class="turn">
      <h3>
        {turn.agent} <span class="who">{figures}</span>
      </h3>
      {turn.parts.map((part, index) => {
        if (part.kind === "call") return <CallView key={index} call={part} {...part} />;
        return part === answer ? null : <SaidView key={index} said={part} isPlan={turn.agent === "planner"} />;
      })}
    </li>
  );
});

function SaidView({ said, isPlan }: { said: Said; isPlan: boolean }) {
  return (
    <>
      {said.reasoning && <p class="thought">{said.reasoning}</p>}
      {/* What the planner says is the plan, which is shown as one. */}
      {said.content && !isPlan && <p class="said">{said.content}</p>}
    </>
  );
}

function BrowserNow({ url, title, screenshot }: { url: string; title: string; screenshot: string | null }) {
  return (
    <figure class="browser">
      {screenshot && <Picture url={screenshot} words={`${words.browser}: ${title || url}`} />}
      <figcaption>
        {title} <span class="who">{url}</span>
      </figcaption>
    </figure>
  );
}
