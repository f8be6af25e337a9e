import type { Interrupt } from "./events";
import type { RunModel } from "./run";
import { texts } from "./texts";

/**
 * What a typed text is for, fixed when it is begun: it may be sent when something else is open. A text for the team is
 * a message to its run, or the next question; it answers nothing.
 */
export type Purpose = TeamPurpose | FormPurpose;

/** A text for the team; `insteadOf` is the form that it was chosen not to answer. */
interface TeamPurpose {
  to: "team";
  insteadOf?: string;
}

/** A text that answers one form; `asked` repeats what it asked. */
export interface FormPurpose {
  to: "form";
  runId: string;
  kind: Interrupt["kind"];
  form: string;
  asked: string;
}

/** A form that can be answered now. */
export interface OpenForm {
  run: RunModel;
  asked: Interrupt;
}

export const forTeam: TeamPurpose = { to: "team" };
/** As much of a question as is repeated above the text, in characters. */
const MAX_ASKED = 200;

/** The open forms of a conversation, oldest first. */
export function openForms(runs: readonly RunModel[]): OpenForm[] {
  return runs.flatMap((run) => run.forms.map((asked) => ({ run, asked })));
}

/** The form that a new text answers: the oldest question of a step, or else the newest that a run waits for. */
export function suggestedForm(runs: readonly RunModel[]): OpenForm | undefined {
  const forms = openForms(runs);
  return forms.find(({ run }) => run.isAtWork) ?? forms.at(-1);
}

/** The key of a form: the same id may ask again, about something else. */
export function keyOf({ interrupt_id, payload }: Interrupt): string {
  return `${interrupt_id} ${JSON.stringify(payload)}`;
}

/** The name under which what is written in a form is stored. */
export function formName({ run, waiting }: { run: RunModel; waiting: Interrupt }): string {
  return `${run.runId} ${keyOf(waiting)}`;
}

/** What is asked for, in a few words. */
export function titleOf({ kind, payload }: Interrupt): string {
  if (kind === "plan_review") return texts.reviewTitle;
  if (kind === "question") return texts.questionTitle;
  return payload["reason"] === "unknown_result" ? texts.unknownTitle : texts.approvalTitle;
}

/** The call that a form is about. */
export function askedCall({ payload }: Interrupt): { tool: string; input: Record<string, unknown> } {
  const input = payload["tool_input"];
  return { tool: String(payload["tool_name"] ?? ""), input: input !== null && typeof input === "object" ? (input as Record<string, unknown>) : {} };
}

/** What a tool does, in words; its name if there are none. */
export function callName(tool: string): string {
  return Object.hasOwn(texts.toolNames, tool) ? texts.toolNames[tool]! : tool;
}

/** What a form asks, in one line. */
export function askedOf(asked: Interrupt): string {
  const { tool } = askedCall(asked);
  const text = asked.kind === "question" ? String(asked.payload["question"] ?? "") : titleOf(asked) + (tool ? ` (${callName(tool)})` : "");
  return text.length > MAX_ASKED ? `${text.slice(0, MAX_ASKED)}…` : text;
}

/** The purpose of a text that answers a form. */
export function answering({ run, asked }: OpenForm): FormPurpose {
  return { to: "form", runId: run.runId, kind: asked.kind, form: keyOf(asked), asked: askedOf(asked) };
}

/** The form that a text answers, if it is still open. */
export function formOf(purpose: FormPurpose, runs: readonly RunModel[]): OpenForm | undefined {
  return openForms(runs).find(({ run, asked }) => run.runId === purpose.runId && keyOf(asked) === purpose.form);
}

export function isSame(one: Purpose | null, other: Purpose | null): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
