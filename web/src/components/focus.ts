import { useLayoutEffect, useRef } from "preact/hooks";

/** The screens on which a focused field covers nothing with a keyboard. */
const HAS_KEYBOARD = "(min-width: 46.01rem) and (hover: hover) and (pointer: fine)";

/** Whether a field that gets the focus by itself opens no keyboard over the page. */
export function hasKeyboard(): boolean {
  return matchMedia(HAS_KEYBOARD).matches;
}

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
