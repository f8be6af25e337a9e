import { useEffect, useRef } from "preact/hooks";
import { COPIED_MS, copyText } from "../../clipboard";
import { Figures } from "../../figures";
import { finishedReport } from "../../finished";
import type { Layout } from "../../layout";
import { reference } from "../../references";
import { texts } from "../../texts";
import { type Service, useService } from "../service";

/** The pause between two layouts of a growing text, as a multiple of the layout's duration. */
const REST = 4;
/** The time in milliseconds after which a finished text is rendered here until the service has rendered it. */
const PATIENCE_MS = 600;

interface Shown {
  text: string;
  isWritten: boolean;
  /** Whether its run has ended: then the service has the report as HTML. */
  isFinal?: boolean;
  /** The run whose report it is; none for other texts. */
  runId?: string;
  /** Called each time the whole text has been rendered. */
  onWritten?: (place: HTMLElement) => void;
}

/** A text as Markdown: the report of a run that has ended as the service renders it, others as they grow, with pauses. */
export function Markdown({ text, isWritten, isFinal = false, runId = "", onWritten = reference }: Shown) {
  const place = useRef<HTMLDivElement>(null);
  const writer = useRef<Writer>(null);
  const service = useService();
  useEffect(() => {
    const made = new Writer(place.current!, service, runId);
    writer.current = made;
    return () => made.close();
  }, [runId]);
  useEffect(() => {
    const leaving = new AbortController();
    const written = writer.current!.write(text, isWritten, isWritten && isFinal, leaving.signal);
    // The text may have been closed a moment ago: Preact cleans up after the next frame.
    void written.then((isAll) => isAll && isWritten && place.current && onWritten(place.current));
    return () => leaving.abort();
  }, [text, isWritten, isFinal]);
  return <div class="markdown" ref={place} onClick={act} />;
}

/** Writes one text into `place`. Its code is loaded with the first text, because the first view of the page has none. */
class Writer {
  #layout: Layout | null = null;
  #figures: Figures;
  #restsUntil = 0;

  constructor(
    private readonly place: HTMLElement,
    private readonly service: Service,
    private readonly runId: string,
  ) {
    this.#figures = new Figures(service);
  }

  /** Show the text; returns whether all of it is shown, or false if it was `left` before. */
  async write(text: string, isWritten: boolean, isFinal: boolean, left: AbortSignal): Promise<boolean> {
    const report = isFinal ? finishedReport(this.service, this.runId, text) : Promise.resolve(null);
    const layout = await import("../../layout");
    const soon = await Promise.race([report, new Promise<undefined>((resolve) => setTimeout(resolve, PATIENCE_MS))]);
    if (left.aborted) return false;
    this.#layout ??= new layout.Layout(this.place, this.runId);
    if (typeof soon !== "string" && !(await this.#render(this.#layout, text, isWritten, left))) return false;
    const html = await report;
    if (left.aborted) return false;
    if (html !== null) {
      this.#layout.finish(html);
      this.#figures.fill(this.place, true);
    }
    return true;
  }

  /** Render the text here, with pauses while it grows. */
  async #render(layout: Layout, text: string, isWritten: boolean, left: AbortSignal): Promise<boolean> {
    const markdown = await import("../../markdown");
    let isAll = false;
    let rest = isWritten ? 0 : this.#restsUntil - performance.now();
    while (!isAll) {
      if (rest > 0) await new Promise((resolve) => setTimeout(resolve, rest));
      if (left.aborted) return false;
      const begun = performance.now();
      isAll = layout.show(text, isWritten, markdown);
      this.#figures.fill(this.place, isWritten && isAll);
      const now = performance.now();
      this.#restsUntil = now + REST * (now - begun);
      rest = 1;
    }
    return true;
  }

  close(): void {
    this.#figures.close();
  }
}

async function act(event: MouseEvent): Promise<void> {
  const button = event.target;
  if (button instanceof HTMLButtonElement && button.className === "copy") {
    const isCopied = await copyText(button.parentElement?.querySelector("pre")?.textContent ?? "");
    button.textContent = isCopied ? texts.copied : texts.notCopied;
    setTimeout(() => (button.textContent = texts.copy), COPIED_MS);
  } else if (button instanceof Element) follow(event, button.closest<HTMLElement>("[data-to]"));
}

/** Follow a link within the text. */
function follow(event: MouseEvent, link: HTMLElement | null): void {
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const id = CSS.escape(link.dataset["to"]!);
  const goal = link.closest(".markdown")!.querySelector<HTMLElement>(`[data-id="${id}"]`);
  if (!goal) return;
  if (goal.tagName !== "A") goal.tabIndex = -1;
  goal.focus();
}
