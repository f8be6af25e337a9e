import { NOTE_FINDING } from "../../findings";
import type { Call } from "../../parts";
import { RUNS_CODE, SEARCHES } from "../../results";
import { CodeCall } from "./calls/CodeCall";
import { FileCall } from "./calls/FileCall";
import { FindingCall } from "./calls/FindingCall";
import { PageCall } from "./calls/PageCall";
import { PlainCall } from "./calls/PlainCall";
import { SearchCall } from "./calls/SearchCall";

const FILE_TOOLS = new Set(["write_file", "read_file", "list_files", "search_files", "str_replace_editor"]);

/** The arguments of a call and its result, in the form of its tool. */
export function CallBody({ call }: { call: Call }) {
  if (RUNS_CODE.has(call.tool)) return <CodeCall call={call} />;
  if (SEARCHES.has(call.tool)) return <SearchCall call={call} />;
  if (call.tool === "crawl_tool") return <PageCall call={call} />;
  if (call.tool === NOTE_FINDING) return <FindingCall call={call} />;
  if (FILE_TOOLS.has(call.tool)) return <FileCall call={call} />;
  return <PlainCall call={call} />;
}

/** What a call would do that has not begun: its code, command, change of a file, or arguments. */
export function ProposedCall({ tool, input }: Pick<Call, "tool" | "input">) {
  const call: Call = { kind: "call", id: "", tool, input, printed: [], result: null, begun: null, ended: null, steps: [], files: [], version: 0 };
  // Its form shows hits alone.
  return SEARCHES.has(tool) ? <PlainCall call={call} /> : <CallBody call={call} />;
}
