import { draw, kindOf } from "./diagrams";
import { highlight, languageOf } from "./highlight";
import { GrowingText, harmless, isReadable } from "./markdown";
import { setMath } from "./math";
import { texts } from "./texts";

/** The number of characters that are rendered at a time. */
const SLICE = 20_000;
/** The maximum number of diagrams in one text. */
const MAX_DIAGRAMS = 20;
const dark = globalThis.matchMedia?.("(prefers-color-scheme: dark)");

/** Renders a growing text as Markdown in `place`; only its last block is rendered again. */
export class Layout {
  #grows = new GrowingText();
  #open: ChildNode[] = [];
  #diagrams = 0;
  /** The number of rendered characters. */
  #laid = 0;

  constructor(readonly place: HTMLElement) {}

  /** Render more of `text` in small pieces, so that the page stays responsive; returns whether all is rendered. */
  show(text: string, isWritten: boolean): boolean {
    if (!isReadable(text)) {
      const plain = Object.assign(document.createElement("pre"), { textContent: text, tabIndex: 0 });
      this.place.replaceChildren(plain);
      this.#grows = new GrowingText();
      this.#open = [plain];
      return true;
    }
    this.#laid = Math.min(text.length, this.#laid + SLICE);
    const isAll = this.#laid === text.length;
    this.#lay(text.slice(0, this.#laid), isWritten && isAll);
    return isAll;
  }

  #lay(text: string, isWritten: boolean): void {
    const { isAnew, settled, open } = this.#grows.take(text, isWritten);
    if (isAnew) {
      this.place.replaceChildren();
      this.#diagrams = 0;
    }
    for (const node of this.#open) node.remove();
    if (settled) this.place.append(this.#finished(harmless(settled)));
    const unfinished = framed(harmless(open));
    this.#open = [...unfinished.childNodes];
    this.place.append(unfinished);
  }

  /** Add formulas, highlighting and diagrams to final blocks when their code is loaded. */
  #finished(blocks: DocumentFragment): DocumentFragment {
    framed(blocks);
    void setMath(blocks);
    void highlight(blocks);
    for (const code of blocks.querySelectorAll("pre > code")) {
      if (languageOf(code) === "mermaid" && this.#diagrams++ < MAX_DIAGRAMS) void drawn(code.closest(".block")!, code.textContent);
    }
    return blocks;
  }
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
  for (const table of content.querySelectorAll("table")) {
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
    image.src = await draw(source, dark.matches);
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
    if (!image.isConnected) return dark.removeEventListener("change", again);
    draw(source, dark.matches).then((url) => (image.src = url), () => undefined);
  };
  dark.addEventListener("change", again);
}

/** The label of a diagram: its title or its kind. */
function nameOf(source: string): string {
  const title = /^[ \t]*(?:accTitle[ \t]*:|title\b:?)[ \t]*(\S.{0,150})/m.exec(source)?.[1];
  return title ? `${texts.diagram}: ${title}` : `${texts.diagram} (${kindOf(source)})`;
}

function element<Name extends keyof HTMLElementTagNameMap>(name: Name, className = "", text = ""): HTMLElementTagNameMap[Name] {
  return Object.assign(document.createElement(name), { ...(className && { className }), textContent: text });
}
