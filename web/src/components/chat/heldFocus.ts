import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

/**
 * Whether the focus is in an element, for what changes the layout. It follows the focus only while no pointer is
 * pressed: else what is under the pointer would move before its release, and the click would be lost.
 */
export function useHeldFocus(place: RefObject<HTMLElement | null>): boolean {
  const [isIn, setIn] = useState(false);
  useEffect(() => {
    let isPressed = false;
    const settle = () => void (isPressed || setIn(place.current?.contains(document.activeElement) ?? false));
    const press = () => void (isPressed = true);
    // Of these, the click and the next element's focus come after the event itself.
    const release = () => void setTimeout(() => ((isPressed = false), settle()));
    const leave = () => void setTimeout(settle);
    const handlers = { pointerdown: press, pointerup: release, pointercancel: release, focusin: settle, focusout: leave };
    const all = Object.entries(handlers);
    for (const [name, handler] of all) document.addEventListener(name, handler, true);
    settle();
    return () => all.forEach(([name, handler]) => document.removeEventListener(name, handler, true));
  }, []);
  return isIn;
}
