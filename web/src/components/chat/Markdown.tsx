import { useEffect, useRef } from "preact/hooks";
import { isReadable, rendered } from "../../markdown";
import { setMath } from "../../math";
import { words } from "../../words";

/** How much longer a text that is being written rests than its layout took. */
const REST = 4;

/** A text as Markdown. While it is written it is laid out again and again, but never most of the time. */
export function Markdown({ text, isWritten }: { text: string; isWritten: boolean }) {
  const place = useRef<HTMLDivElement>(null);
  const restsUntil = useRef(0);
  useEffect(() => {
    const lay = () => {
      const begun = performance.now();
      if (place.current) fill(place.current, text, isWritten);
      const now = performance.now();
      restsUntil.current = now + REST * (now - begun);
    };
    const rest = restsUntil.current - performance.now();
    if (isWritten || rest <= 0) return void lay();
    const timer = setTimeout(lay, rest);
    return () => clearTimeout(timer);
  }, [text, isWritten]);
  return <div class="markdown" ref={place} onClick={copy} />;
}

function fill(place: HTMLElement, text: string, isWritten: boolean): void {
  if (!isReadable(text)) {
    const plain = Object.assign(document.createElement("pre"), { textContent: text, tabIndex: 0 });
    place.replaceChildren(plain);
    return;
  }
  const content = rendered(text);
  for (const block of content.querySelectorAll("pre")) {
    block.tabIndex = 0;
    const button = Object.assign(document.createElement("button"), { className: "copy", textContent: words.copy });
    const frame = Object.assign(document.createElement("div"), { className: "block" });
    block.replaceWith(frame);
    frame.append(block, button);
  }
  for (const table of content.querySelectorAll("table")) {
    const frame = Object.assign(document.createElement("div"), { className: "wide", tabIndex: 0 });
    table.replaceWith(frame);
    frame.append(table);
  }
  place.replaceChildren(content);
  if (isWritten) void setMath(place);
}

async function copy(event: MouseEvent): Promise<void> {
  const button = event.target;
  if (!(button instanceof HTMLButtonElement) || button.className !== "copy") return;
  await navigator.clipboard.writeText(button.parentElement?.querySelector("pre")?.textContent ?? "");
  button.textContent = words.copied;
}
