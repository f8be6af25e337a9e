import type { Explanation } from "./claims";
import { MARK, numbersIn } from "./evidence";
import { texts } from "./texts";

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

/** The number of marked statements, and the entries of the list of sources by number. */
export interface References {
  unverified: number;
  entries: ReadonlyMap<number, HTMLElement>;
}

/**
 * Link the citations of a rendered text to its list of sources and back, and add the reason to `[unverified]` marks.
 * `known` has more data about the sources; without it, the list's texts are used. `reasons` has what is known about
 * the marks, by their numbers in the text; `onClaim` is called with the index of a claim whose mark is chosen.
 */
export function reference(
  place: HTMLElement,
  known: ReadonlyMap<number, Source> = new Map(),
  reasons: ReadonlyMap<number, Explanation> = new Map(),
  onClaim: (claim: number) => void = () => undefined,
): References {
  const entries = entriesIn(place);
  const cameFrom = new Map<number, HTMLElement>();
  for (const [number, entry] of entries) settle(entry, number, known.get(number), () => cameFrom.get(number)?.focus());
  for (const citation of place.querySelectorAll<HTMLElement>("span.cite")) {
    if (entries.size === 0 || citation.closest(".source > .cite")) continue;
    link(citation, entries, known, cameFrom);
  }
  const marks = numbered(place);
  for (const [mark, number] of marks) explain(mark, reasons.get(number), onClaim);
  return { unverified: marks.size, entries };
}

/** The marks with their numbers: code may have the same text, which is no mark but counts. */
function numbered(place: HTMLElement): Map<HTMLElement, number> {
  const marks = new Map<HTMLElement, number>();
  let count = 0;
  for (const one of place.querySelectorAll<HTMLElement>("span.unverified, code")) {
    if (one.matches("code")) count += one.textContent.split(MARK).length - 1;
    else marks.set(one, (count += 1));
  }
  return marks;
}

/** The items of the last list that begin with a number in brackets and contain a link. */
function entriesIn(place: HTMLElement): Map<number, HTMLElement> {
  const lists = [...place.querySelectorAll<HTMLElement>("ul, ol")].reverse();
  for (const list of lists) {
    const found = [...list.children].map((item) => [numberOf(item), item as HTMLElement] as const);
    if (found.length > 0 && found.every(([number]) => number > 0)) {
      list.classList.add("sources");
      return new Map(found);
    }
  }
  return new Map();
}

function numberOf(item: Element): number {
  const first = item.firstElementChild;
  const begins = first?.matches("span.cite") && !first.previousSibling?.textContent?.trim();
  return begins && item.querySelector("a[href]") ? (numbersIn(first!.textContent)[0] ?? 0) : 0;
}

/** Show an entry as title, site and retrieval time; its number links back to the text. */
function settle(entry: HTMLElement, number: number, source: Source | undefined, goBack: () => void): void {
  if (entry.classList.contains("source")) return;
  const address = entry.querySelector("a")!;
  const host = hostOf(address.href);
  const cite = entry.querySelector<HTMLElement>(".cite")!;
  const marks = [...entry.querySelectorAll(".unverified")];
  for (const one of [cite, address, ...marks]) one.remove();
  const title = entry.textContent.trim().replace(/\s*:$/, "");
  address.title = address.href;
  address.textContent = title || address.textContent;
  const facts = [host, source && read(source)].filter(Boolean).join(" · ");
  const back = Object.assign(document.createElement("button"), { className: "back", textContent: "↩", onclick: goBack });
  back.setAttribute("aria-label", `${texts.backToText}: ${number}`);
  entry.replaceChildren(cite, " ", address, " ", span("who", facts), " ", ...marks, back);
  entry.classList.add("source");
  entry.tabIndex = -1;
}

function read(source: Source): string {
  const when = new Date(source.retrieved_at * 1_000).toLocaleDateString(document.documentElement.lang, { dateStyle: "medium" });
  return `${source.kind === "page" ? texts.opened : texts.found} ${when}`;
}

function link(
  citation: HTMLElement,
  entries: ReadonlyMap<number, HTMLElement>,
  known: ReadonlyMap<number, Source>,
  cameFrom: Map<number, HTMLElement>,
): void {
  const parts = citation.textContent.split(/(\d+)/).map((part) => {
    const number = Number(part);
    const entry = part.trim() ? entries.get(number) : undefined;
    if (!entry) return part;
    const address = entry.querySelector("a")!;
    const facts = [known.get(number)?.title || address.textContent, entry.querySelector(".who")?.textContent];
    const made = Object.assign(document.createElement("a"), { href: address.href, textContent: part });
    // A click leads to the entry in the list; with a modifier key it opens the page itself.
    made.onclick = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      cameFrom.set(number, made);
      entry.focus();
    };
    if (!cameFrom.has(number)) cameFrom.set(number, made);
    made.target = "_blank";
    made.rel = "noopener noreferrer";
    made.dataset["card"] = facts.filter(Boolean).join("\n");
    made.setAttribute("aria-label", `${texts.source} ${part}: ${facts[0]}`);
    return made;
  });
  citation.replaceChildren(...parts);
}

function explain(mark: HTMLElement, known: Explanation | undefined, onClaim: (claim: number) => void): void {
  const lines = known?.lines ?? [texts.unverifiedWhy];
  mark.textContent = texts.unverified;
  mark.dataset["card"] = lines.join("\n");
  mark.tabIndex = 0;
  mark.setAttribute("aria-label", `${texts.unverified}: ${lines.join(" ")}`);
  const choose = known && known.claim >= 0 ? () => onClaim(known.claim) : null;
  mark.setAttribute("role", choose ? "button" : "note");
  mark.onclick = choose;
  mark.onkeydown = choose && ((event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose();
  });
}

function span(className: string, textContent: string): HTMLSpanElement {
  return Object.assign(document.createElement("span"), { className, textContent });
}

function hostOf(address: string): string {
  return URL.canParse(address) ? new URL(address).hostname.replace(/^www\./, "") : "";
}
