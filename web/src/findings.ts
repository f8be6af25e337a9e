import type { Call } from "./parts";

/** The tool by which members note what they find. */
export const NOTE_FINDING = "note_finding";
const NOTED = /^Noted\b[^[]*(?:\[(\d+)\])?/;

/** A statement that a member noted, the words of the source that say it, and the source's number among those of the run. */
export interface Finding {
  statement: string;
  quote: string;
  source: number | null;
}

/** The finding that a call noted; null if it noted none, as one that was refused. */
export function findingOf({ tool, input, result }: Pick<Call, "tool" | "input" | "result">): Finding | null {
  const noted = tool === NOTE_FINDING && result !== null ? NOTED.exec(result) : null;
  if (!noted) return null;
  const text = (name: string) => (typeof input[name] === "string" ? (input[name] as string) : "");
  return { statement: text("statement"), quote: text("quote"), source: noted[1] ? Number(noted[1]) : null };
}
