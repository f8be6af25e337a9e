import { useEffect } from "preact/hooks";
import { lasted } from "../../clock";
import { useService } from "../service";

interface Stretch {
  /** Unix seconds; null without times. */
  begun: number | null;
  ended: number | null;
  /** Whether it is still in progress. */
  isOpen: boolean;
}

/** The duration of something, up to now if it is in progress; nothing if unknown. */
export function Duration({ begun, ended, isOpen }: Stretch) {
  const { clock } = useService();
  const counts = isOpen && begun !== null && ended === null;
  useEffect(() => (counts ? clock.watch() : undefined), [counts, clock]);
  if (begun === null || (ended === null && !isOpen)) return null;
  return <span class="lasts">{lasted((ended ?? clock.now.value) - begun)}</span>;
}
