/** The time in milliseconds to move the pointer from an element onto its card. */
const WAY_MS = 200;
const GAP = 6;

/** Show the `data-card` of an element while it is hovered or focused; Escape hides it. */
export function showTooltips(): void {
  const card = Object.assign(document.createElement("div"), { className: "card", id: "card", popover: "manual" });
  card.setAttribute("role", "tooltip");
  document.body.append(card);
  let leaving: ReturnType<typeof setTimeout> | undefined;
  let about: HTMLElement | null = null;
  const hide = () => {
    about?.removeAttribute("aria-describedby");
    about = null;
    card.hidePopover();
  };
  const show = ({ target }: Event) => {
    const wanted = target instanceof Element ? target.closest<HTMLElement>("[data-card]") : null;
    if (wanted || card.contains(target as Node)) clearTimeout(leaving);
    if (!wanted || wanted === about) return;
    if (about) hide();
    about = wanted;
    const [first = "", ...more] = wanted.dataset["card"]!.split("\n");
    card.replaceChildren(more.length > 0 ? Object.assign(document.createElement("strong"), { textContent: first }) : first);
    card.append(...more.map((line) => Object.assign(document.createElement("div"), { textContent: line })));
    wanted.setAttribute("aria-describedby", card.id);
    card.showPopover();
    stand(card, wanted);
  };
  const leave = ({ target }: Event) => {
    if (!about || !(target === about || card.contains(target as Node))) return;
    clearTimeout(leaving);
    leaving = setTimeout(hide, WAY_MS);
  };
  document.addEventListener("pointerover", show);
  document.addEventListener("focusin", show);
  document.addEventListener("pointerout", leave);
  document.addEventListener("focusout", leave);
  document.addEventListener("scroll", () => about && stand(card, about), { capture: true, passive: true });
  // In the capture phase, so that Escape first hides the card and then the view below it.
  window.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !about) return;
    event.stopPropagation();
    hide();
  }, { capture: true });
}

/** Below the element, or above it if there is no room, and inside of the window. */
function stand(card: HTMLElement, about: HTMLElement): void {
  const at = about.getClientRects()[0] ?? about.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = card;
  const below = at.bottom + GAP;
  card.style.left = `${Math.max(GAP, Math.min(at.left, innerWidth - width - GAP))}px`;
  card.style.top = `${below + height > innerHeight ? Math.max(GAP, at.top - GAP - height) : below}px`;
}
