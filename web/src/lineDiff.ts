/** Neighbouring lines of two texts that are in both, in the old one alone, or in the new one alone. */
export interface Hunk {
  kind: "same" | "gone" | "come";
  text: string;
}

/** With more changed lines than this, the whole old text is shown, and then the new one. */
const MAX_EDITS = 1_000;
/** The unchanged lines that are shown before and after a change. */
const CONTEXT = 3;

/** Compare two texts line by line. The code for it is loaded at the first change that is shown. */
export async function diffLines(old: string, now: string): Promise<Hunk[]> {
  const { diffLines: compare } = await import("diff");
  const found = compare(ended(old), ended(now), { maxEditLength: MAX_EDITS });
  if (!found) return replaced(old, now);
  const hunks = found.map(({ added, removed, value }): Hunk => ({ kind: added ? "come" : removed ? "gone" : "same", text: value }));
  return hunks.map((one, at) => (one.kind === "same" ? { ...one, text: shortened(one.text, at > 0, at < hunks.length - 1) } : one));
}

/** The whole old text and the whole new one. */
export function replaced(old: string, now: string): Hunk[] {
  return [{ kind: "gone" as const, text: old }, { kind: "come" as const, text: now }].filter(({ text }) => text !== "");
}

/** A last line without its end is no change. */
function ended(text: string): string {
  return text === "" || text.endsWith("\n") ? text : `${text}\n`;
}

/** The unchanged lines beside a change; those between are counted. */
function shortened(text: string, isAfter: boolean, isBefore: boolean): string {
  const lines = text.replace(/\n$/, "").split("\n");
  const [head, tail] = [isAfter ? CONTEXT : 0, isBefore ? CONTEXT : 0];
  const left = lines.length - head - tail;
  if (left <= 1) return text;
  return [...lines.slice(0, head), `⋯ ${left}`, ...lines.slice(lines.length - tail)].join("\n") + "\n";
}
