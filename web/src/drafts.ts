import { keep, kept } from "./kept";

/** What was begun to be asked in a conversation; null is one that is about to begin. */
export interface Draft {
  text: string;
  files: readonly File[];
}

const files = new Map<string | null, readonly File[]>();
const nameOf = (thread: string | null) => `maniple.draft.${thread ?? ""}`;

export function draftOf(thread: string | null): Draft {
  return { text: kept(nameOf(thread)), files: files.get(thread) ?? [] };
}

/** What was begun in one conversation belongs to another now. */
export function moveDraft(from: string | null, to: string): void {
  keepDraft(to, draftOf(from));
  keepDraft(from, { text: "", files: [] });
}

/** Keep what was begun: its text as long as the tab is open, its files until the page is left. */
export function keepDraft(thread: string | null, draft: Draft): void {
  keep(nameOf(thread), draft.text);
  files.set(thread, draft.files);
}
