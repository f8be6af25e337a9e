import { useEffect, useState } from "preact/hooks";

/** The number of parts that are rendered per frame. */
const IN_A_FRAME = 24;

/**
 * The number of `total` parts to render by now: a few more in each frame until all are there. So a long work does not
 * block the page, and is completely available to searches and screen readers.
 */
export function useProgressiveCount(total: number): number {
  const [mounted, setMounted] = useState(IN_A_FRAME);
  const isMore = mounted < total;
  useEffect(() => {
    if (!isMore) return;
    const frame = requestAnimationFrame(() => setMounted(mounted + IN_A_FRAME));
    return () => cancelAnimationFrame(frame);
  }, [mounted, isMore]);
  return mounted;
}
