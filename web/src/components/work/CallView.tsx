import { memo } from "preact/compat";
import { useState } from "preact/hooks";
import { type Outcome, RUNS_CODE, SEARCHES, outcomeOf, reasonOf } from "../../results";
import { NOTE_FINDING } from "../../findings";
import type { Call } from "../../parts";
import { texts } from "../../texts";
import { Boundary } from "../Boundary";
import { BrowserSteps } from "./BrowserSteps";
import { Duration } from "./Duration";
import { SHOWN } from "./Text";
import { CodeCall } from "./calls/CodeCall";
import { FileCall } from "./calls/FileCall";
import { FindingCall } from "./calls/FindingCall";
import { PageCall } from "./calls/PageCall";
import { PlainCall } from "./calls/PlainCall";
import { SearchCall } from "./calls/SearchCall";

const SIGNS: Record<Outcome, string> = { open: "●", waits: "‖", failed: "✕", done: "✓" };
const FILE_TOOLS = new Set(["write_file", "read_file", "list_files", "search_files", "str_replace_editor"]);

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
        <code>{call.tool}</code> <span class="about">{about(call.input)}</span>
        <span class="unseen">, {saidOf(outcome, isLive)}</span>
        <Duration begun={call.begun} ended={call.ended} isOpen={isUnderWay} />
      </summary>
      {isOpen && (
        <>
          {outcome === "failed" && !isShown(call) && <p class="notice bad">{reasonOf(call)}</p>}
          {call.steps.length > 0 && <BrowserSteps steps={call.steps} />}
          <Boundary>
            <Body call={call} />
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

function Body({ call }: { call: Call }) {
  if (RUNS_CODE.has(call.tool)) return <CodeCall call={call} />;
  if (SEARCHES.has(call.tool)) return <SearchCall call={call} />;
  if (call.tool === "crawl_tool") return <PageCall call={call} />;
  if (call.tool === NOTE_FINDING) return <FindingCall call={call} />;
  if (FILE_TOOLS.has(call.tool)) return <FileCall call={call} />;
  return <PlainCall call={call} />;
}

function saidOf(outcome: Outcome, isLive: boolean): string {
  if (outcome === "open") return isLive ? texts.working : texts.noResult;
  return { waits: texts.status["interrupted"]!, failed: texts.status["failed"]!, done: texts.status["completed"]! }[outcome];
}

function about(input: Record<string, unknown>): string {
  const first = Object.values(input).find((value) => typeof value === "string") ?? "";
  return String(first).slice(0, 200);
}
