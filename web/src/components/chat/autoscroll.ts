import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

/** The distance from the end, in pixels, within which scrolling follows new text. */
const NEAR_END = 80;

/**
 * Keep the end of the scrolled element `place` in view while the user is there. Returns the handler for `onScroll`.
 * When `begun` changes, scroll to the end, because the user wants to see what has started.
 */
export function useFollowing(place: RefObject<HTMLElement | null>, begun: unknown): () => void {
  const follows = useRef(false);
  const toEnd = () => {
    if (follows.current) place.current?.scrollTo({ top: place.current.scrollHeight });
  };
  useLayoutEffect(() => void (follows.current ||= Boolean(begun)), [begun]);
  useLayoutEffect(toEnd);
  useEffect(() => {
    const inner = place.current?.firstElementChild;
    if (!inner) return;
    // Markdown is rendered a moment after its run.
    const watcher = new ResizeObserver(toEnd);
    watcher.observe(inner);
    return () => watcher.disconnect();
  }, []);
  return () => {
    // Scroll events arrive later, when the element may be gone.
    if (!place.current) return;
    const { scrollHeight, scrollTop, clientHeight } = place.current;
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR_END;
  };
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
