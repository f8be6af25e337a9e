import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { RunModel } from "../../run";

/** The distance from the end, in pixels, within which scrolling follows new text. */
const NEAR_END = 80;

/** Where the conversation stays: at its end, or with the first line of an element at the top; null where the user is. */
type Anchor = "end" | { selector: string } | null;

/** The distance between an element and the top of the window, in pixels. */
const MARGIN = 12;

/**
 * Keep the end of the scrolled element `place` in view while the user is there. Returns the handler for `onScroll`.
 * When `begun` changes, scroll to the end, because the user wants to see what has started. When `last`, the newest
 * run, ends while the end is followed, show the beginning of its answer; if it had ended before, show its question.
 */
export function useFollowing(place: RefObject<HTMLElement | null>, begun: unknown, last?: RunModel): () => void {
  const anchor = useRef<Anchor>(null);
  const height = useRef(0);
  const workedOn = useRef<RunModel | null>(null);
  const isEnded = last !== undefined && last.isOver && last.isComplete;
  const toAnchor = () => {
    const top = topFor(place.current, anchor.current);
    if (top !== null && Math.abs(top - place.current!.scrollTop) > 1) place.current!.scrollTo({ top });
    height.current = place.current?.scrollHeight ?? 0;
  };
  useLayoutEffect(() => void (begun && (anchor.current = "end")), [begun]);
  useLayoutEffect(() => {
    if (last && !last.isOver) workedOn.current = last;
    if (isEnded && anchor.current === "end") anchor.current = { selector: workedOn.current === last ? ANSWER : QUESTION };
  }, [last, last?.isOver, isEnded]);
  useLayoutEffect(toAnchor);
  useEffect(() => {
    const inner = place.current?.firstElementChild;
    if (!inner) return;
    // Markdown is rendered a moment after its run.
    const watcher = new ResizeObserver(toAnchor);
    watcher.observe(inner);
    // What changes after a gesture, the user has changed: a place to rest at is given up.
    const letGo = () => void (typeof anchor.current === "object" && (anchor.current = null));
    const { current: element } = place;
    // What the user unfolds is read where it is, at the end, too.
    const release = (event: Event) => void ((event.type === UNFOLD || (event.target as Element).closest("summary")) && (anchor.current = null));
    for (const name of GESTURES) element?.addEventListener(name, letGo);
    for (const name of UNFOLDS) element?.addEventListener(name, release);
    return () => {
      watcher.disconnect();
      for (const name of GESTURES) element?.removeEventListener(name, letGo);
      for (const name of UNFOLDS) element?.removeEventListener(name, release);
    };
  }, []);
  return () => {
    // Scroll events arrive later, when the element may be gone.
    if (!place.current) return;
    const { scrollHeight, scrollTop, clientHeight } = place.current;
    // Other content has moved the place, not the user.
    if (scrollHeight !== height.current) return toAnchor();
    const top = topFor(place.current, anchor.current);
    if (typeof anchor.current === "object" && top !== null && Math.abs(top - scrollTop) <= NEAR_ANCHOR) return;
    anchor.current = scrollHeight - scrollTop - clientHeight < NEAR_END ? "end" : null;
  };
}

const QUESTION = ".run:last-child";
const ANSWER = ".run:last-child .answer";
const NEAR_ANCHOR = 4;
const UNFOLD = "unfold";
const UNFOLDS = [UNFOLD, "click"];
const GESTURES = ["wheel", "touchmove", "pointerdown", "keydown", "focusin"];

/** Say that the user unfolds an element: the conversation around it then neither follows its end nor goes elsewhere. */
export function announceUnfolding(element: Element): void {
  element.dispatchEvent(new Event(UNFOLD, { bubbles: true }));
}

/** Where an anchor is, as a scroll position that is possible; null for none. */
function topFor(place: HTMLElement | null, anchor: Anchor): number | null {
  if (!place || !anchor) return null;
  const end = place.scrollHeight - place.clientHeight;
  if (anchor === "end") return end;
  const element = place.querySelector(anchor.selector);
  if (!element) return end;
  const top = place.scrollTop + element.getBoundingClientRect().top - place.getBoundingClientRect().top;
  return Math.max(0, Math.min(end, top - MARGIN));
}

/** Keep the scroll position when something is inserted above `first`, the key of the first element. */
export function useHeld(place: RefObject<HTMLElement | null>, first: string | undefined): void {
  const held = useRef({ first, top: 0, item: null as Element | null });
  if (held.current.first !== first) {
    // Its position before anything is inserted above it.
    const item = place.current?.querySelector(".run") ?? null;
    held.current = { first, item, top: topOf(item) };
  }
  useLayoutEffect(() => {
    const { item, top } = held.current;
    if (item?.isConnected) place.current?.scrollBy({ top: topOf(item) - top });
  }, [first]);
}

function topOf(item: Element | null): number {
  return item?.getBoundingClientRect().top ?? 0;
}
