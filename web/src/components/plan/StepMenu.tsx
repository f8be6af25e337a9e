import { useId, useRef } from "preact/hooks";
import { labelled, texts } from "../../texts";

export interface Choice {
  name: string;
  act: () => void;
}

/** The menu of a step. Arrow keys move in it; Escape, Tab and a click outside close it. */
export function StepMenu({ title, choices }: { title: string; choices: readonly Choice[] }) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const menu = useRef<HTMLDivElement>(null);
  const items = () => [...(menu.current?.querySelectorAll("button") ?? [])];
  const show = () => {
    // In the top layer, because a run that is scrolled out of view may clip its contents.
    const isOpen = menu.current!.togglePopover();
    button.current!.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) return;
    place(menu.current!, button.current!);
    items()[0]?.focus();
  };
  const hide = () => {
    if (menu.current?.matches(":popover-open")) show();
  };
  const onKey = (event: KeyboardEvent) => {
    const all = items();
    const at = all.indexOf(document.activeElement as HTMLButtonElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (event.key === "Escape" || event.key === "Tab") {
      event.stopPropagation();
      button.current?.focus();
      hide();
    }
    if (to === undefined) return;
    event.preventDefault();
    all.at(to % all.length)?.focus();
  };
  const onOut = ({ relatedTarget }: FocusEvent) => {
    if (relatedTarget !== button.current && !menu.current?.contains(relatedTarget as Node | null)) hide();
  };
  const open = (event: KeyboardEvent) => {
    if (event.key !== "ArrowDown") return;
    event.preventDefault();
    show();
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        class="menu-button"
        aria-label={labelled(texts.stepMenu, title)}
        title={texts.stepMenu}
        aria-haspopup="menu"
        aria-expanded="false"
        aria-controls={id}
        onClick={show}
        onKeyDown={open}
      >
        <span aria-hidden="true">⋯</span>
      </button>
      <div id={id} ref={menu} class="step-menu" popover="manual" role="menu" aria-label={title} onKeyDown={onKey} onFocusOut={onOut}>
        {choices.map(({ name, act }) => (
          <button key={name} type="button" role="menuitem" tabIndex={-1} onClick={() => (button.current?.focus(), hide(), act())}>
            {name}
          </button>
        ))}
      </div>
    </>
  );
}

/** Put the menu below its button, or above it at the end of the window. */
function place(menu: HTMLElement, button: HTMLElement): void {
  const { right, bottom, top } = button.getBoundingClientRect();
  menu.style.right = `${document.documentElement.clientWidth - right}px`;
  const isLow = bottom > innerHeight * 0.7;
  menu.style.top = isLow ? "auto" : `${bottom + 4}px`;
  menu.style.bottom = isLow ? `${innerHeight - top + 4}px` : "auto";
}
