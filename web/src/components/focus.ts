/** The screens on which a focused field covers nothing with a keyboard. */
const HAS_KEYBOARD = "(min-width: 46.01rem) and (hover: hover) and (pointer: fine)";

/** Whether a field that gets the focus by itself opens no keyboard over the page. */
export function hasKeyboard(): boolean {
  return matchMedia(HAS_KEYBOARD).matches;
}

const CONVERSATION = ".conversation";
/** The regions of the page, and what gets the focus if the element that has it there goes. */
const HEIRS: readonly [region: string, heir: () => string][] = [
  [".pending, .composer", () => (hasKeyboard() ? "#question" : CONVERSATION)],
  [".panel", () => ".panel-tabs [aria-selected=true]"],
];

/** Give the focus to an heir when the focused element is removed or hidden, such as the button of an answered form. */
export function keepFocus(): void {
  let held: HTMLElement | null = null;
  let heir = CONVERSATION;
  let isDue = false;
  const check = () => {
    isDue = false;
    const { activeElement, body } = document;
    if (!held || (activeElement !== body && activeElement !== held) || isUsable(held)) return;
    held = null;
    document.querySelector<HTMLElement>(heir)?.focus({ preventScroll: true });
  };
  document.addEventListener("focusin", ({ target }) => {
    held = target as HTMLElement;
    heir = (HEIRS.find(([region]) => held!.closest(region))?.[1] ?? (() => CONVERSATION))();
  });
  new MutationObserver(() => {
    if (!held || isDue) return;
    isDue = true;
    requestAnimationFrame(check);
  }).observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["class", "hidden", "inert"] });
}

/** Whether an element can have the focus. A button that is disabled while its action is under way keeps its place. */
function isUsable(element: HTMLElement): boolean {
  return element.isConnected && element.checkVisibility({ visibilityProperty: true }) && !element.closest("[inert]");
}
