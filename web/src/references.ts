import type { Explanation } from "./claims";
import { MARK } from "./evidence";
import { labelled, texts } from "./texts";

/** The service's data about a source, in addition to the report's. */
export interface Source {
  number: number;
  url: string;
  title: string;
  /** `result` of a search, or a `page` that was opened. */
  kind: "result" | "page";
  /** Unix seconds. */
  retrieved_at: number;
}

/**
 * Lead from the citations of a finished report to its list of sources and back, and add the reason to `[unverified]`
 * marks. Returns the numbers of the sources in the list. `known` has more data about the sources; without it, the list's texts are used. `reasons` has what is known
 * about the marks, by their numbers in the text; `onClaim` is called with the index of a claim whose mark is chosen.
 */
export function reference(
  place: HTMLElement,
  known: ReadonlyMap<number, Source> = new Map(),
  reasons: ReadonlyMap<number, Explanation> = new Map(),
  onClaim: (claim: number) => void = () => undefined,
): ReadonlySet<number> {
  const listed = [...place.querySelectorAll<HTMLElement>("li.source")];
  const entries = new Map(listed.map((one) => [numberOf(one.dataset["id"]), one]));
  const cards = new Map([...entries].map(([number, entry]) => [number, cardOf(entry, known.get(number))]));
  const cameFrom = new Map<number, HTMLElement>();
  for (const [number, entry] of entries) addWayBack(entry, number, () => cameFrom.get(number)?.focus());
  for (const citation of place.querySelectorAll<HTMLAnchorElement>("a.citation")) {
    const number = numberOf(citation.dataset["to"]);
    describe(citation, number, cards.get(number));
    citation.addEventListener("click", () => cameFrom.set(number, citation));
    if (!cameFrom.has(number)) cameFrom.set(number, citation);
  }
  for (const [mark, number] of numbered(place)) explain(mark, reasons.get(number), onClaim);
  return new Set(entries.keys());
}

/** The number of a source, from the id of its entry; 0 for none. */
function numberOf(id = ""): number {
  return Number(/^source-(\d+)$/.exec(id)?.[1] ?? 0);
}

/** The marks with their numbers: code may have the same text, which is no mark but counts. */
function numbered(place: HTMLElement): Map<HTMLElement, number> {
  const marks = new Map<HTMLElement, number>();
  let count = 0;
  for (const one of place.querySelectorAll<HTMLElement>("mark, code")) {
    if (one.matches("code")) count += one.textContent.split(MARK).length - 1;
    else marks.set(one, (count += 1));
  }
  return marks;
}

function addWayBack(entry: HTMLElement, number: number, goBack: () => void): void {
  const back = Object.assign(document.createElement("button"), { className: "back", textContent: "↩", onclick: goBack });
  back.setAttribute("aria-label", labelled(texts.backToText, String(number)));
  entry.append(" ", back);
}

/** What is shown about a source beside its citations. */
interface Card {
  address: string;
  title: string;
  facts: string;
}

function cardOf(entry: HTMLElement, source: Source | undefined): Card {
  const address = entry.querySelector<HTMLAnchorElement>("a[target]")?.href ?? "";
  const title = source?.title || entry.textContent.replace(/^\s*\[\d+\]\s*/, "").trim() || address;
  return { address, title, facts: source ? [hostOf(address), read(source)].filter(Boolean).join(" · ") : "" };
}

/** Name the source of a citation. A click leads to the entry in the list; with a modifier key it opens the page itself. */
function describe(citation: HTMLAnchorElement, number: number, card: Card | undefined): void {
  if (!card) return;
  const { address, title, facts } = card;
  if (address) Object.assign(citation, { href: address, target: "_blank", rel: "noopener noreferrer" });
  citation.dataset["card"] = [title, facts].filter(Boolean).join("\n");
  citation.setAttribute("aria-label", labelled(`${texts.source} ${number}`, title));
}

function read(source: Source): string {
  const when = new Date(source.retrieved_at * 1_000).toLocaleDateString(document.documentElement.lang, { dateStyle: "medium" });
  return `${source.kind === "page" ? texts.opened : texts.found} ${when}`;
}

function explain(mark: HTMLElement, known: Explanation | undefined, onClaim: (claim: number) => void): void {
  const lines = known?.lines ?? [texts.unverifiedWhy];
  mark.textContent = texts.unverified;
  mark.removeAttribute("title");
  mark.className = "unverified";
  mark.dataset["card"] = lines.join("\n");
  mark.tabIndex = 0;
  mark.setAttribute("aria-label", labelled(texts.unverified, lines.join(" ")));
  const choose = known && known.claim >= 0 ? () => onClaim(known.claim) : null;
  mark.setAttribute("role", choose ? "button" : "note");
  mark.onclick = choose;
  mark.onkeydown = choose && ((event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose();
  });
}

function hostOf(address: string): string {
  return URL.canParse(address) ? new URL(address).hostname.replace(/^www\./, "") : "";
}
