import { useState } from "preact/hooks";

/** What is written in forms and not sent, by form. It outlives their views, until the page is left. */
const drafts = new Map<string, unknown>();

export function hasFormDraft(form: string): boolean {
  return drafts.has(form);
}

/** Forget what was written in a form: it was sent, or given up. */
export function dropFormDraft(form: string): void {
  drafts.delete(form);
}

/** What is written in a form, `initial` at first, and the function that stores it. */
export function useFormDraft<Written>(form: string, initial: () => Written): [Written, (written: Written) => void] {
  const [written, setWritten] = useState(() => (drafts.has(form) ? (drafts.get(form) as Written) : initial()));
  const change = (to: Written) => {
    drafts.set(form, to);
    setWritten(to);
  };
  return [written, change];
}
