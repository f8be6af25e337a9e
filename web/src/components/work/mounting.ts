import { useEffect, useState } from "preact/hooks";

/** How many parts of the work come into the page in one frame of the screen. */
const IN_A_FRAME = 24;

/**
 * How many of `total` parts to show by now: a few more in each frame until all are there, so that a long work neither
 * stops the page nor is ever missing for whoever searches it or has it read aloud.
 */
export function useMounted(total: number): number {
  const [mounted, setMounted] = useState(IN_A_FRAME);
  const isMore = mounted < total;
  useEffect(() => {
    if (!isMore) return;
    const frame = requestAnimationFrame(() => setMounted(mounted + IN_A_FRAME));
    return () => cancelAnimationFrame(frame);
  }, [mounted, isMore]);
  return mounted;
}
