import { useEffect, useRef } from "preact/hooks";
import { Layout } from "../../layout";
import { reference } from "../../references";
import { words } from "../../words";

/** How much longer a text that is being written rests than its layout took. */
const REST = 4;

interface Shown {
  text: string;
  isWritten: boolean;
  /** Is called each time that the whole text stands in its place. */
  onWritten?: (place: HTMLElement) => void;
}

/** A text as Markdown. While it is written it is laid out again and again, but never most of the time. */
export function Markdown({ text, isWritten, onWritten = reference }: Shown) {
  const place = useRef<HTMLDivElement>(null);
  const layout = useRef<Layout>(null);
  const restsUntil = useRef(0);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const lay = () => {
      const begun = performance.now();
      layout.current ??= new Layout(place.current!);
      const isAll = layout.current.show(text, isWritten);
      if (!isAll) timer = setTimeout(lay);
      else if (isWritten) onWritten(place.current!);
      const now = performance.now();
      restsUntil.current = now + REST * (now - begun);
    };
    const rest = restsUntil.current - performance.now();
    if (isWritten || rest <= 0) lay();
    else timer = setTimeout(lay, rest);
    return () => clearTimeout(timer);
  }, [text, isWritten]);
  return <div class="markdown" ref={place} onClick={copy} />;
}

async function copy(event: MouseEvent): Promise<void> {
  const button = event.target;
  if (!(button instanceof HTMLButtonElement) || button.className !== "copy") return;
  await navigator.clipboard.writeText(button.parentElement?.querySelector("pre")?.textContent ?? "");
  button.textContent = words.copied;
}
