import type { ClaimView, MarkedCitation } from "./events.generated";
import { texts } from "./texts";

/** The check of a report's claims, as `GET /api/runs/{run_id}/claims` returns it. */
export interface CheckedClaims {
  /** The last line of the report, as Markdown; "" if nothing could be checked. */
  score: string;
  claims: ClaimView[];
  /** The number of claims that are not in the list. */
  unlisted: number;
  marked_citations: MarkedCitation[];
}

export const NOTHING_CHECKED: CheckedClaims = { score: "", claims: [], unlisted: 0, marked_citations: [] };

/** What is known about the mark with the number `mark`. */
export interface Explanation {
  /** Lines of plain text: the verdict with its reason, and what a source says. */
  lines: string[];
  /** The index of the claim in the list; -1 if the mark is about no claim. */
  claim: number;
}

/** What is known about each mark of a report, by its number among all marks of the text. */
export function explanations({ claims, marked_citations }: CheckedClaims): ReadonlyMap<number, Explanation> {
  const found = new Map<number, Explanation>();
  for (const { mark, reason } of marked_citations) {
    const known = found.get(mark);
    if (known) known.lines.push(reason);
    else found.set(mark, { lines: [reason], claim: -1 });
  }
  claims.forEach((one, claim) => {
    if (one.mark === null) return;
    const lines = [`${texts.verdicts[one.verdict]}: ${one.reason}`, ...passageOf(one)];
    const others = (found.get(one.mark)?.lines ?? []).filter((line) => line !== one.reason);
    found.set(one.mark, { lines: [...lines, ...others], claim });
  });
  return found;
}

/** The passage of a claim with the number of its source, as at most one line. */
export function passageOf({ passage }: ClaimView): string[] {
  if (!passage) return [];
  return [`${passage.source > 0 ? `[${passage.source}]` : texts.ownPassage}: “${passage.text}”`];
}

/** The score as plain text. */
export function scoreText({ score }: CheckedClaims): string {
  return score.replace(/^\*|\*$/g, "");
}
