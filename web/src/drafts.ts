import { readStored, writeStored } from "./storage";

/** The draft of a question by conversation; null is a new conversation. */
export interface Draft {
  text: string;
  files: readonly File[];
}

const files = new Map<string | null, readonly File[]>();
const nameOf = (thread: string | null) => `maniple.draft.${thread ?? ""}`;

export function draftOf(thread: string | null): Draft {
  return { text: readStored(nameOf(thread)), files: files.get(thread) ?? [] };
}

/** Move a draft to another conversation. */
export function moveDraft(from: string | null, to: string): void {
  keepDraft(to, draftOf(from));
  keepDraft(from, { text: "", files: [] });
}

/** Store a draft: its text until the tab is closed, its files until the page is left. */
export function keepDraft(thread: string | null, draft: Draft): void {
  writeStored(nameOf(thread), draft.text);
  files.set(thread, draft.files);
}
