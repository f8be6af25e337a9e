import { answer, here, openId, openRuns, say, trouble } from "./conversation";
import type { RunChoices } from "./conversation";
import { replyTo } from "./decisions";
import { type Draft, begun, draftOf, keepDraft, returnDraft } from "./drafts";
import { type OpenForm, type Purpose, answering, forTeam, formOf, keyOf, suggestedForm } from "./purpose";
import type { Interrupt } from "./events";
import type { RunModel } from "./run";
import { texts } from "./texts";

/** The draft of the open conversation after its text changed. Its purpose is that of its first words. */
export function typed(draft: Draft, text: string): Draft {
  if (!text.trim()) return { ...draft, text, purpose: draft.text.trim() ? null : draft.purpose };
  return { ...draft, text, purpose: draft.text.trim() ? draft.purpose : currentPurpose(draft) };
}

/** The purpose of a draft; null if the user has to choose, because its form is gone or it was never fixed. */
export function currentPurpose({ text, purpose }: Draft): Purpose | null {
  const form = suggestedForm(openRuns());
  if (purpose?.to === "form" && !text.trim() && formOf(purpose, openRuns())) return purpose;
  if (!text.trim()) return form && !isInsteadOf(purpose, form) ? answering(form) : forTeam;
  if (purpose?.to === "form") return formOf(purpose, openRuns()) ? purpose : null;
  return purpose ?? (form ? null : forTeam);
}

/** Let the field take an answer to this form, with what is written in it, after `begin`. */
export function answerInWords(run: RunModel, asked: Interrupt, begin: string): void {
  const draft = draftOf(openId.value);
  const text = draft.text.startsWith(begin) ? draft.text : begin + draft.text;
  keepDraft(openId.value, { ...draft, text, purpose: answering({ run, asked }) });
  begun.value += 1;
}

function isInsteadOf(purpose: Purpose | null, form: OpenForm): boolean {
  return purpose?.to === "team" && purpose.insteadOf === keyOf(form.asked);
}

/**
 * Send the draft of the open conversation for its purpose. `changed` is called after each change of a draft. A text
 * that is not accepted is a draft again.
 */
export async function sendDraft(choices: RunChoices, changed: () => void): Promise<boolean> {
  const place = here();
  const draft = draftOf(openId.value);
  const text = draft.text.trim();
  const purpose = currentPurpose(draft);
  if (!text) return false;
  if (purpose === null) {
    trouble.value = texts.choosePurpose;
    return false;
  }
  const form = purpose.to === "form" ? formOf(purpose, openRuns()) : undefined;
  const reply = form ? replyTo(form.asked, text) : null;
  const isAnswer = form !== undefined && reply !== null;
  keepDraft(openId.value, { text: "", files: isAnswer ? draft.files : [], purpose: null });
  changed();
  const isTaken = isAnswer ? await answer(form.run, form.asked, reply) : await say(text, choices, draft.files);
  if (!isTaken) returnDraft(place.id ?? place.from, { ...draft, purpose, files: isAnswer ? [] : draft.files });
  changed();
  return isTaken;
}
