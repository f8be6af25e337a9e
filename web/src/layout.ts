import { draw, kindOf } from "./diagrams";
import { highlight, languageOf } from "./highlight";
import type * as markdown from "./markdown";
import { setMath } from "./math";
import { safeHtml } from "./safeHtml";
import { labelled, texts } from "./texts";
import { isDark, watchTheme } from "./theme";

/** The number of characters that are rendered at a time. */
const SLICE = 20_000;
/** The maximum number of diagrams in one text. */
const MAX_DIAGRAMS = 20;
/** The number of finished texts that are stored as elements. */
const MOST_PREPARED = 8;
const prepared = new Map<string, DocumentFragment>();

/** Shows a text in `place`: rendered here while it is streamed, and as the service renders it when it is finished. */
export class Layout {
  #grows: markdown.GrowingText | null = null;
  #open: ChildNode[] = [];
  /** The blocks of code that have their highlighting and diagrams, or wait for them. */
  #decorated = new WeakSet<Element>();
  #diagrams = 0;
  /** The number of rendered characters. */
  #laid = 0;

  /** `runId` is the run whose figures the text shows; "" for none. */
  constructor(
    readonly place: HTMLElement,
    private readonly runId: string,
  ) {}

  /** Show a finished text. What the reader sees of it stays where it is, with its diagrams and coloured code. */
  finish(html: string): void {
    const text = prepare(html);
    this.#begin();
    holdPosition(this.place, () => {
      // The height of what was never in sight is a guess, by which a reader's place cannot be held.
      this.place.classList.toggle("lazy", this.place.childElementCount === 0);
      this.#decorate(text, this.#keepBlocks(text));
      this.place.replaceChildren(text);
    });
  }

  /** Put the shown blocks of code with their diagrams into `text`; returns the blocks that are new. */
  #keepBlocks(text: DocumentFragment): Element[] {
    const shown = blocksIn(this.place, (one) => this.#decorated.has(one));
    const fresh: Element[] = [];
    for (const [name, blocks] of blocksIn(text)) {
      for (const block of blocks) {
        const same = shown.get(name)?.shift();
        if (same) block.replaceWith(same);
        else fresh.push(block);
      }
    }
    return fresh;
  }

  /** Render more of `text` in small pieces, so that the page stays responsive; returns whether all is rendered. */
  show(text: string, isWritten: boolean, { GrowingText, isReadable }: typeof markdown): boolean {
    if (!isReadable(text)) {
      this.#begin();
      this.place.replaceChildren(Object.assign(document.createElement("pre"), { textContent: text, tabIndex: 0 }));
      return true;
    }
    if (!this.#grows) this.place.replaceChildren();
    this.#grows ??= new GrowingText(this.runId);
    this.#laid = Math.min(text.length, this.#laid + SLICE);
    const isAll = this.#laid === text.length;
    this.#lay(this.#grows, text.slice(0, this.#laid), isWritten && isAll);
    return isAll;
  }

  #begin(): void {
    this.#grows = null;
    this.#open = [];
    this.#diagrams = 0;
    this.#laid = 0;
  }

  #lay(grows: markdown.GrowingText, text: string, isWritten: boolean): void {
    const { isAnew, settled, open } = grows.take(text, isWritten);
    if (isAnew) {
      this.place.replaceChildren();
      this.#diagrams = 0;
    }
    for (const node of this.#open) node.remove();
    if (settled) {
      const blocks = framed(safeHtml(settled));
      void setMath(blocks);
      this.#decorate(blocks, [...blocks.querySelectorAll(".block")]);
      this.place.append(blocks);
    }
    const unfinished = framed(safeHtml(open));
    this.#open = [...unfinished.childNodes];
    this.place.append(unfinished);
  }

  /** Add highlighting and diagrams to final blocks of code when their code is loaded. */
  #decorate(place: ParentNode, blocks: Element[]): void {
    void highlight(place);
    for (const block of blocks) {
      const code = block.querySelector("pre > code");
      this.#decorated.add(block);
      if (code && languageOf(code) === "mermaid" && this.#diagrams++ < MAX_DIAGRAMS) void drawn(block, code.textContent);
    }
  }
}

/** Safe HTML with its frames. It is stored, because a report is shown in its conversation and by itself. */
function prepare(html: string): DocumentFragment {
  const made = prepared.get(html) ?? framed(safeHtml(html));
  prepared.set(html, made);
  if (prepared.size > MOST_PREPARED) prepared.delete(prepared.keys().next().value!);
  return made.cloneNode(true) as DocumentFragment;
}

/** The wanted blocks of code in `place`, or the diagrams that they became, by their language and text. */
function blocksIn(place: ParentNode, isWanted: (block: Element) => boolean = () => true): Map<string, Element[]> {
  const found = new Map<string, Element[]>();
  for (const code of place.querySelectorAll(".block > pre > code")) {
    const block = code.closest(".block")!;
    if (!isWanted(block)) continue;
    const name = `${code.className}\n${code.textContent}`;
    const same = found.get(name) ?? [];
    same.push(block.closest(".diagram") ?? block);
    found.set(name, same);
  }
  return found;
}

/** Change the content of `place` so that its block at the top of the window stays there. */
function holdPosition(place: HTMLElement, change: () => void): void {
  const isAbove = place.getBoundingClientRect().top < 0;
  const index = isAbove ? [...place.children].findIndex((one) => one.getBoundingClientRect().bottom > 0) : -1;
  const before = place.children[index]?.getBoundingClientRect().top;
  change();
  const after = place.children[index]?.getBoundingClientRect().top;
  if (before === undefined || after === undefined || Math.abs(after - before) < 1) return;
  place.closest<HTMLElement>(".reading, .conversation")?.scrollBy({ top: after - before });
}

function framed(content: DocumentFragment): DocumentFragment {
  for (const block of content.querySelectorAll("pre")) {
    block.tabIndex = 0;
    const language = block.firstElementChild ? languageOf(block.firstElementChild) : "";
    const frame = element("div", "block");
    const button = element("button", "copy", texts.copy);
    if (language) frame.append(element("span", "language", language));
    block.replaceWith(frame);
    frame.append(block, button);
  }
  for (const table of content.querySelectorAll(":not(.wide) > table")) {
    const frame = element("div", "wide");
    frame.tabIndex = 0;
    table.replaceWith(frame);
    frame.append(table);
  }
  return content;
}

/** Insert the diagram before its collapsed source; if it cannot be drawn, show the reason below the source. */
async function drawn(block: Element, source: string): Promise<void> {
  const image = element("img");
  try {
    image.src = await draw(source, isDark());
  } catch (problem) {
    block.append(element("p", "who", problem instanceof Error ? problem.message : String(problem)));
    return;
  }
  image.alt = nameOf(source);
  const figure = element("figure", "diagram");
  const folded = element("details");
  block.replaceWith(figure);
  folded.append(element("summary", "", texts.diagramSource), block);
  figure.append(image, folded);
  const again = () => {
    if (!image.isConnected) return unwatch();
    draw(source, isDark()).then((url) => (image.src = url), () => undefined);
  };
  const unwatch = watchTheme(again);
}

/** The label of a diagram: its title or its kind. */
function nameOf(source: string): string {
  const title = /^[ \t]*(?:accTitle[ \t]*:|title\b:?)[ \t]*(\S.{0,150})/m.exec(source)?.[1];
  return title ? labelled(texts.diagram, title) : `${texts.diagram} (${kindOf(source)})`;
}

function element<Name extends keyof HTMLElementTagNameMap>(name: Name, className = "", text = ""): HTMLElementTagNameMap[Name] {
  return Object.assign(document.createElement(name), { ...(className && { className }), textContent: text });
}
