import { memo } from "preact/compat";
import type { Waited } from "../../pauses";
import { words } from "../../words";

/** The maximum length of a question, in characters. */
const SHOWN = 500;

/** What the run waited for, and the outcome of the call in question. */
export const WaitedView = memo(function WaitedView({ waited }: { waited: Waited; version: number }) {
  const { kind, payload } = waited.asked;
  if (kind === "plan_review") return <p class="waited">{words.waited.review}</p>;
  if (kind === "question") {
    return <p class="waited">{words.waited.question} {cut(String(payload["question"] ?? ""))}</p>;
  }
  return (
    <p class="waited">
      {payload["reason"] === "unknown_result" ? words.waited.again : words.waited.approval} <code>{String(payload["tool_name"] ?? "")}</code>{" "}
      <code>{cut(JSON.stringify(payload["tool_input"] ?? {}))}</code> {waited.fate && <strong>{words.waited[waited.fate]}</strong>}
    </p>
  );
});

function cut(text: string): string {
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}
