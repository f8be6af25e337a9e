import { memo } from "preact/compat";
import type { PausePart } from "../../parts";
import { texts } from "../../texts";

/** The maximum length of a question, in characters. */
const SHOWN = 500;

/** What the run waited for, and the outcome of the call in question. */
export const PauseView = memo(function PauseView({ pause }: { pause: PausePart; version: number }) {
  const { kind, payload } = pause.asked;
  if (kind === "plan_review") return <p class="waited">{texts.pause.review}</p>;
  if (kind === "question") {
    return <p class="waited">{texts.pause.question} {cut(String(payload["question"] ?? ""))}</p>;
  }
  return (
    <p class="waited">
      {payload["reason"] === "unknown_result" ? texts.pause.again : texts.pause.approval} <code>{String(payload["tool_name"] ?? "")}</code>{" "}
      <code>{cut(JSON.stringify(payload["tool_input"] ?? {}))}</code> {pause.outcome && <strong>{texts.pause[pause.outcome]}</strong>}
    </p>
  );
});

function cut(text: string): string {
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}
