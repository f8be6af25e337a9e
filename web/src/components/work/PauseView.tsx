import { memo } from "preact/compat";
import type { PausePart } from "../../parts";
import { askedCall, callName } from "../../purpose";
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
  const { tool, input } = askedCall(pause.asked);
  return (
    <p class="waited">
      {payload["reason"] === "unknown_result" ? texts.pause.again : texts.pause.approval} {callName(tool)}{" "}
      <code>{cut(mainArgument(input))}</code> {pause.outcome && <strong>{texts.pause[pause.outcome]}</strong>}
    </p>
  );
});

/** The code, command, path or address of a call; all arguments where there is no one text. */
function mainArgument(input: Record<string, unknown>): string {
  const values = Object.values(input);
  return values.length === 1 && typeof values[0] === "string" ? values[0] : JSON.stringify(input);
}

function cut(text: string): string {
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}
