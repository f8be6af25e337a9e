import { useLayoutEffect, useRef } from "preact/hooks";

/**
 * Give the focus to `heir` when the focused element is removed, such as an answered form. Returns the focus handler
 * of the elements around it.
 */
export function useFocusKept(heir: () => HTMLElement | null): (event: FocusEvent) => void {
  const held = useRef<EventTarget | null>(null);
  useLayoutEffect(() => {
    const isGone = held.current instanceof Node && !held.current.isConnected;
    if (isGone && document.activeElement === document.body) heir()?.focus({ preventScroll: true });
    if (isGone) held.current = null;
  });
  return (event) => (held.current = event.target);
}
