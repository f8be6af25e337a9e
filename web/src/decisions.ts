import type { Interrupt } from "./events";
import { type PlannedStep, describeEditedPlan, reviewedPlan } from "./editedPlan";
import { labelled, texts } from "./texts";

/** Words that accept and nothing else; those of `tools/decisions.py`. */
const ACCEPTANCE = [
  ...["accept", "accepted", "approve", "approved", "yes", "y", "ok", "okay", "go", "yep", "yeah", "sure"],
  ...["ja", "oui", "sí", "接受", "同意", "批准", "好", "好的", "可以", "是", "是的"],
].join("|");
const POLITE = "please|thanks?(?: you)?|bitte|danke|merci|gracias|por favor|谢谢|请";
const ACCEPTED = new RegExp(`^(?:(?:${POLITE})[\\s,;]+)?(?:${ACCEPTANCE})(?:[\\s,;.!…–—，。！、；-]+(?:${ACCEPTANCE}|${POLITE}))*[\\s.!…。！]*$`, "iu");
/** What a typed rejection, and a typed result of a call, begin with. */
export const REJECTION = "/reject ";
export const RESULT_OF_CALL = "/result: ";
const REJECT = /^\/reject(?![\p{L}\p{N}_])\s*/iu;
const RERUN = /^(?:run (?:it )?again|again|re-?run|retry|再运行|重新运行)[\s.!。！]*$/iu;
const RESULT = /^\/?result\s*[:：]\s*(?=\S)/iu;
const SKIP = /^(?:\/?skip|跳过)[\s.!。！]*$/iu;

/** The answer to a call that needs approval, as the service takes it. */
export const approval = { type: "approve" };

/** The answer that also approves later calls of its kind in this run. */
export const allowance = { type: "approve", always: true };

/** The rejection of a call; `message` reaches the model unchanged. */
export function rejection(message: string): unknown {
  return { type: "reject", message };
}

/** The result of a call that the user knows, in place of an unknown one. */
export function result(message: string): unknown {
  return { type: "result", message };
}

/** An answer in words for people, as it stands in the conversation, below what was `asked`. */
export function describeAnswer(answer: unknown, asked: Interrupt | null = null): string {
  if (answer === "accept") return texts.approved;
  if (typeof answer === "string") return answer;
  const { type, message, args, always, ...rest } = Object(answer) as Record<string, unknown>;
  if (type === "approve" && always === true) return texts.allowed;
  if (type === "approve") return texts.approved;
  if (type === "reject") return message ? labelled(texts.rejected, String(message)) : texts.rejected;
  if (type === "result") return String(message);
  if (type === "edit") return `${texts.edited}\n${JSON.stringify(args, null, 2)}`;
  const steps = Array.isArray(rest["steps"]) ? (rest["steps"] as PlannedStep[]) : null;
  if (steps) return [texts.acceptedPlan, ...describeEditedPlan(reviewedPlan(asked)?.steps ?? null, steps)].join("\n");
  return JSON.stringify(answer);
}

/** The JSON object in a text; null for anything else. */
export function objectIn(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** The answer that a typed text is to an interrupt; null if it decides nothing, and is a message to the team. */
export function replyTo({ kind, payload }: Interrupt, text: string): unknown {
  if (kind !== "tool_approval") return text;
  if (payload["reason"] === "unknown_result") {
    if (RERUN.test(text)) return "run again";
    return SKIP.test(text) ? "skip" : RESULT.test(text) ? result(text.replace(RESULT, "")) : null;
  }
  if (ACCEPTED.test(text)) return approval;
  return REJECT.test(text) ? rejection(text.replace(REJECT, "")) : null;
}
