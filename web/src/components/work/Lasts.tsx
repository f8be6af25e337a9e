import { useEffect } from "preact/hooks";
import { lasted } from "../../clock";
import { useService } from "../service";

interface Stretch {
  /** Unix seconds; null where no times are told. */
  begun: number | null;
  ended: number | null;
  /** Whether it goes on. */
  isOpen: boolean;
}

/** How long something took, or takes until now; nothing where nobody knows. */
export function Lasts({ begun, ended, isOpen }: Stretch) {
  const { clock } = useService();
  const counts = isOpen && begun !== null && ended === null;
  useEffect(() => (counts ? clock.watch() : undefined), [counts, clock]);
  if (begun === null || (ended === null && !isOpen)) return null;
  return <span class="lasts">{lasted((ended ?? clock.now.value) - begun)}</span>;
}
