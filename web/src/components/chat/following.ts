import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

/** How far from its end, in pixels, a reader still follows what is written. */
const NEAR_END = 80;

/**
 * Keep the end of what scrolls in `place` in view while its reader is there. Returns what notes where the reader
 * is, for `onScroll`. When `begun` becomes another truth, something was begun that the reader wants to see.
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
    // Markdown is laid out a moment after its run was shown.
    const watcher = new ResizeObserver(toEnd);
    watcher.observe(inner);
    return () => watcher.disconnect();
  }, []);
  return () => {
    // A scroll is told a moment later, when the place may be gone.
    if (!place.current) return;
    const { scrollHeight, scrollTop, clientHeight } = place.current;
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR_END;
  };
}

/** Keep what the reader sees where it is when something comes in above `first`, the key of what scrolls first. */
export function useHeld(place: RefObject<HTMLElement | null>, first: string | undefined): void {
  const held = useRef({ first, top: 0, item: null as Element | null });
  if (held.current.first !== first) {
    // Where it is now, before anything above it is there.
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
