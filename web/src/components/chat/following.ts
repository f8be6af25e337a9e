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
    const { scrollHeight, scrollTop, clientHeight } = place.current!;
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR_END;
  };
}
