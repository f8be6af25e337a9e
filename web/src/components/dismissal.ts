import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";

/** Close a menu (`<details>`) on Escape and on a click outside. */
export function useDismissal(menu: RefObject<HTMLDetailsElement | null>): void {
  useEffect(() => {
    const leaving = new AbortController();
    const options = { signal: leaving.signal };
    addEventListener("pointerdown", (event) => {
      if (menu.current && !menu.current.contains(event.target as Node)) menu.current.open = false;
    }, options);
    menu.current?.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !menu.current?.open) return;
      event.stopPropagation();
      menu.current.open = false;
      menu.current.querySelector("summary")?.focus();
    }, options);
    return () => leaving.abort();
  }, [menu]);
}
