import { useEffect, useRef } from "preact/hooks";
import { Figures } from "../../figures";
import { Layout } from "../../layout";
import { reference } from "../../references";
import { texts } from "../../texts";
import { useService } from "../service";

/** The pause between two layouts of a growing text, as a multiple of the layout's duration. */
const REST = 4;

interface Shown {
  text: string;
  isWritten: boolean;
  /** The run whose report it is, for its figures; none for other texts. */
  runId?: string;
  /** Called each time the whole text has been rendered. */
  onWritten?: (place: HTMLElement) => void;
}

/** A text as Markdown. While it is written it is rendered repeatedly, with pauses. */
export function Markdown({ text, isWritten, runId = "", onWritten = reference }: Shown) {
  const place = useRef<HTMLDivElement>(null);
  const layout = useRef<Layout>(null);
  const restsUntil = useRef(0);
  const service = useService();
  const figures = useRef<Figures>(null);
  useEffect(() => {
    const made = runId ? new Figures(service, runId) : null;
    figures.current = made;
    return () => made?.close();
  }, [runId]);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const lay = () => {
      const begun = performance.now();
      layout.current ??= new Layout(place.current!);
      const isAll = layout.current.show(text, isWritten);
      if (!isAll) timer = setTimeout(lay);
      else if (isWritten) onWritten(place.current!);
      figures.current?.fill(place.current!, isWritten && isAll);
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
  button.textContent = texts.copied;
}
