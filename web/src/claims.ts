import type { ClaimView, MarkedCitation, ReasonView } from "./events.generated";
import { labelled, texts } from "./texts";

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

/** The reasons whose passage is the user's. */
const FROM_USER: ReadonlySet<ReasonView["code"]> = new Set(["given", "judged_given"]);

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
  for (const one of marked_citations) {
    const known = found.get(one.mark);
    if (known) known.lines.push(reasonOf(one));
    else found.set(one.mark, { lines: [reasonOf(one)], claim: -1 });
  }
  claims.forEach((one, claim) => {
    if (one.mark === null) return;
    const reason = reasonOf(one);
    const lines = [labelled(texts.verdicts[one.verdict], reason), ...passageOf(one)];
    const others = (found.get(one.mark)?.lines ?? []).filter((line) => line !== reason);
    found.set(one.mark, { lines: [...lines, ...others], claim });
  });
  return found;
}

/** The reasons of a verdict in the language of the page; the service's sentence if it sent no codes, or unknown ones. */
export function reasonOf({ reason, reasons = [] }: { reason: string; reasons?: ReasonView[] }): string {
  if (reasons.length === 0 || !reasons.every(({ code }) => Object.hasOwn(texts.reasons, code))) return reason;
  return reasons.map(sentenceOf).join(" ");
}

function sentenceOf({ code, values }: ReasonView): string {
  return texts.reasons[code].replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}

/** The passage of a claim with the number of its source, as at most one line. */
export function passageOf({ passage, reasons = [] }: ClaimView): string[] {
  if (!passage) return [];
  return [`${passage.source > 0 ? `[${passage.source}]` : ownPassage(reasons)}: “${passage.text}”`];
}

function ownPassage(reasons: ReasonView[]): string {
  if (reasons.length === 0) return texts.ownPassage;
  return reasons.some(({ code }) => FROM_USER.has(code)) ? texts.userPassage : texts.programPassage;
}

/** The score as plain text. */
export function scoreText({ score }: CheckedClaims): string {
  return score.replace(/^\*|\*$/g, "");
}
