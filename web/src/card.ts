/** How long, in milliseconds, a pointer has to get from what a card is about onto the card. */
const WAY_MS = 200;
const GAP = 6;

/** Show what `data-card` says of an element, while that is pointed at or focused; Escape hides it. */
export function showCards(): void {
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
  // First of all: Escape hides the card, and only then what the card is on.
  window.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !about) return;
    event.stopPropagation();
    hide();
  }, { capture: true });
}

/** Beneath what it is about, or above where there is no room, and never beyond the window's sides. */
function stand(card: HTMLElement, about: HTMLElement): void {
  const at = about.getClientRects()[0] ?? about.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = card;
  const below = at.bottom + GAP;
  card.style.left = `${Math.max(GAP, Math.min(at.left, innerWidth - width - GAP))}px`;
  card.style.top = `${below + height > innerHeight ? Math.max(GAP, at.top - GAP - height) : below}px`;
}
