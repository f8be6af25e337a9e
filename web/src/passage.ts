import { signal } from "@preact/signals";
import { type Found, piecesOf } from "./search";

/** The name of the highlight of what a search has found; `chat.css` has its colours. */
const HIGHLIGHT = "found";
/** Characters before and after a found word that tell its place from others; fewer if they are not found. */
const CONTEXTS = [60, 25, 10, 0];
/** How long a passage is waited for, in milliseconds, and how long it is kept in view while the page settles. */
const PATIENCE_MS = 15_000;
const SETTLING_MS = 1_500;
/** How long the text may be there without the passage, which may not be drawn yet. */
const MISSING_MS = 3_000;
const GESTURES = ["wheel", "touchmove", "pointerdown", "keydown"];

/** The run whose question is shown whole, because something in it was found. */
export const unfolded = signal("");

let leave: () => void = () => undefined;

/** Scroll to what a search has found, and mark it, as soon as it is on the page; a gesture of the user ends the wait. `onMissing` is called if it is not in the text as that is shown. */
export function showFound(hit: Found, onMissing: () => void): void {
  leave();
  if (!hit.in_answer) unfolded.value = hit.run_id;
  let missingSince = 0;
  let until = performance.now() + PATIENCE_MS;
  const watcher = new MutationObserver((changes) => {
    // A long text is drawn in pieces.
    if (changes.some(({ target }) => placeOf(hit)?.contains(target))) missingSince = 0;
    look();
  });
  const timer = setInterval(() => look(), 200);
  leave = () => {
    watcher.disconnect();
    clearInterval(timer);
    for (const name of GESTURES) removeEventListener(name, leave, true);
  };
  let isFound = false;
  const look = () => {
    if (performance.now() > until) {
      leave();
      return isFound ? undefined : onMissing();
    }
    const place = placeOf(hit);
    const range = place && findWord(place, hit);
    if (place && !range) {
      missingSince ||= performance.now();
      if (isFound || performance.now() - missingSince < MISSING_MS) return;
      leave();
      return onMissing();
    }
    if (!range) return;
    missingSince = 0;
    if (!isFound) until = performance.now() + SETTLING_MS;
    isFound = true;
    if ("Highlight" in globalThis) highlights()?.set(HIGHLIGHT, new Highlight(range));
    const { top, bottom } = range.getBoundingClientRect();
    const isInView = bottom > top && top > innerHeight * 0.1 && bottom < innerHeight * 0.7;
    if (!isInView) range.startContainer.parentElement!.scrollIntoView({ block: "center" });
  };
  for (const name of GESTURES) addEventListener(name, leave, true);
  watcher.observe(document.body, { childList: true, subtree: true });
  look();
}

/** Remove the mark of what was found. */
export function forgetFound(): void {
  leave();
  unfolded.value = "";
  highlights()?.delete(HIGHLIGHT);
}

/** Browsers without them scroll to the passage only. */
function highlights(): HighlightRegistry | undefined {
  return globalThis.CSS?.highlights;
}

/** The question or the answer that has a hit; null while it is not on the page. */
function placeOf(hit: Found): Element | null {
  const run = document.getElementById(`run-${hit.run_id}`);
  return run?.querySelector(hit.in_answer ? ".answer" : ".question") ?? null;
}

/** The first found word of a passage within an element, whose text has other marks and spaces than the passage. */
export function findWord(place: Element, hit: Pick<Found, "passage" | "marks">): Range | null {
  const pieces = piecesOf(hit);
  const at = pieces.findIndex((one) => one.isMarked);
  if (at < 0) return null;
  const word = letters(pieces[at]!.text);
  const [before, after] = [pieces.slice(0, at), pieces.slice(at + 1)].map((some) => letters(some.map(({ text }) => text).join("")));
  const page = lettersIn(place);
  for (const length of CONTEXTS) {
    const lead = before!.slice(Math.max(0, before!.length - length));
    const starts = allOf(page.text, lead + word + after!.slice(0, length)).map((start) => start + lead.length);
    // Only its context tells a word from the same letters within another word.
    const start = lead ? starts[0] : (starts.find((one) => isWordStart(page.places, one)) ?? starts[0]);
    if (start !== undefined && word) return between(page.places, start, start + word.length);
  }
  return null;
}

/** Where a text begins within another one; overlapping places count once. */
function allOf(text: string, sought: string): number[] {
  const starts: number[] = [];
  if (!sought) return starts;
  for (let at = text.indexOf(sought); at >= 0; at = text.indexOf(sought, at + sought.length)) starts.push(at);
  return starts;
}

/** Whether no letter stands directly before this one. */
function isWordStart(places: Placed["places"], at: number): boolean {
  const [before, here] = [places[at - 1], places[at]!];
  return before?.node !== here.node || before.offset + 1 < here.offset;
}

/** The letters and digits of a text in lower case; each stays one code unit. */
function letters(text: string): string {
  return [...text].filter((one) => /[\p{L}\p{N}]/u.test(one)).map(folded).join("");
}

function folded(character: string): string {
  const lower = character.toLowerCase();
  return lower.length === character.length ? lower : character;
}

interface Placed {
  text: string;
  /** The node and the offset of each code unit of `text`. */
  places: { node: Text; offset: number }[];
}

function lettersIn(place: Element): Placed {
  const walker = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
  const places: Placed["places"] = [];
  const found: string[] = [];
  for (let node = walker.nextNode() as Text | null; node; node = walker.nextNode() as Text | null) {
    let offset = 0;
    for (const character of node.data) {
      const kept = letters(character);
      for (let unit = 0; unit < kept.length; unit += 1) places.push({ node, offset: offset + unit });
      found.push(kept);
      offset += character.length;
    }
  }
  return { text: found.join(""), places };
}

function between(places: Placed["places"], start: number, end: number): Range {
  const range = document.createRange();
  range.setStart(places[start]!.node, places[start]!.offset);
  range.setEnd(places[end - 1]!.node, places[end - 1]!.offset + 1);
  return range;
}
