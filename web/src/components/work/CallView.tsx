import { memo } from "preact/compat";
import { useState } from "preact/hooks";
import { type Outcome, RUNS_CODE, outcomeOf, reasonOf } from "../../results";
import type { Call } from "../../parts";
import { callName } from "../../purpose";
import { texts } from "../../texts";
import { Boundary } from "../Boundary";
import { BrowserSteps } from "./BrowserSteps";
import { CallBody } from "./CallBody";
import { Duration } from "./Duration";
import { SHOWN } from "./Text";

const SIGNS: Record<Outcome, string> = { open: "●", waits: "‖", failed: "✕", done: "✓" };

interface Props {
  call: Call;
  version: number;
  /** Whether its member is still working. */
  isLive: boolean;
  /** Whether it is the newest call of a member at work: then it is unfolded, unless the user folds it. */
  isNewest?: boolean;
}

/** A tool call: name and summary; arguments and result when expanded. */
export const CallView = memo(function CallView({ call, isLive, isNewest = false }: Props) {
  const [chosen, setChosen] = useState<boolean | null>(null);
  const isOpen = chosen ?? isNewest;
  const toggle = (event: Event) => (event.preventDefault(), setChosen(!isOpen));
  const outcome = outcomeOf(call);
  const isUnderWay = outcome === "open" && isLive;
  return (
    <details class={`call ${isUnderWay ? "under-way" : outcome}`} open={isOpen}>
      <summary onClick={toggle}>
        <span class="sign" aria-hidden="true">{outcome === "open" && !isLive ? "–" : SIGNS[outcome]}</span>
        <span class="tool" title={call.tool}>{callName(call.tool)}</span> <span class="about">{about(call.input)}</span>
        <span class="unseen">, {saidOf(outcome, isLive)}</span>
        <Duration begun={call.begun} ended={call.ended} isOpen={isUnderWay} />
      </summary>
      {isOpen && (
        <>
          {outcome === "failed" && !isShown(call) && <p class="notice bad">{reasonOf(call)}</p>}
          {call.steps.length > 0 && <BrowserSteps steps={call.steps} />}
          <Boundary>
            <CallBody call={call} />
          </Boundary>
        </>
      )}
    </details>
  );
});

/** Whether the terminal already shows the whole result, including the error. */
function isShown({ tool, result }: Call): boolean {
  return RUNS_CODE.has(tool) && (result ?? "").length <= SHOWN;
}

function saidOf(outcome: Outcome, isLive: boolean): string {
  if (outcome === "open") return isLive ? texts.working : texts.noResult;
  return { waits: texts.status["interrupted"]!, failed: texts.status["failed"]!, done: texts.status["completed"]! }[outcome];
}

function about(input: Record<string, unknown>): string {
  const first = Object.values(input).find((value) => typeof value === "string") ?? "";
  return String(first).slice(0, 200);
}
