import { signal } from "@preact/signals";
import { type Purpose, forTeam, isSame } from "./purpose";
import { readStored, writeStored } from "./storage";

/** The text that is being written in a conversation; null is a new conversation. */
export interface Draft {
  text: string;
  files: readonly File[];
  /** What the text is for, since it was begun; null if there is none, or if that has to be chosen. */
  purpose: Purpose | null;
}

const files = new Map<string | null, readonly File[]>();
const nameOf = (thread: string | null) => `maniple.draft.${thread ?? ""}`;
const purposeNameOf = (thread: string | null) => `maniple.purpose.${thread ?? ""}`;

/** Increases when a draft was begun elsewhere than in its field. */
export const begun = signal(0);

/** Put a text into a conversation's field, with the files that are there; for the team unless what is written there is for something else. */
export function beginDraft(thread: string | null, text: string): void {
  const draft = draftOf(thread);
  keepDraft(thread, { ...draft, text, purpose: draft.text.trim() ? draft.purpose : (draft.purpose ?? forTeam) });
  begun.value += 1;
}

export function draftOf(thread: string | null): Draft {
  const text = readStored(nameOf(thread));
  const purpose = readStored(purposeNameOf(thread));
  return { text, files: files.get(thread) ?? [], purpose: purpose ? (JSON.parse(purpose) as Purpose) : null };
}

/** Move a draft to another conversation. */
export function moveDraft(from: string | null, to: string): void {
  keepDraft(to, draftOf(from));
  keepDraft(from, { text: "", files: [], purpose: null });
}

/** Store a draft: its text until the tab is closed, its files until the page is left. */
export function keepDraft(thread: string | null, draft: Draft): void {
  writeStored(nameOf(thread), draft.text);
  writeStored(purposeNameOf(thread), draft.purpose ? JSON.stringify(draft.purpose) : "");
  files.set(thread, draft.files);
}

/** Put a text that was refused before what was typed meanwhile. Of two purposes the user chooses one. */
export function returnDraft(thread: string | null, refused: Draft): void {
  const now = draftOf(thread);
  const isOne = !now.text.trim() || isSame(refused.purpose, now.purpose);
  keepDraft(thread, {
    text: now.text ? `${refused.text}\n${now.text}` : refused.text,
    files: [...refused.files, ...now.files],
    purpose: isOne ? refused.purpose : null,
  });
}
