/** A longer block is not highlighted, because that would take too long. */
const LONGEST = 20_000;
/** The number of blocks whose colours are stored, because a text is shown repeatedly. */
const MOST = 200;
const NAME = /(?:^|\s)language-([\w+#-]+)/;

const known = new Map<string, DocumentFragment>();

/** The language that a code block declares; "" for none. */
export function languageOf(code: Element): string {
  return NAME.exec(code.className)?.[1]?.toLowerCase() ?? "";
}

/** Highlight the code blocks in `place`: known ones immediately, others one by one, so that the page stays responsive. */
export async function highlight(place: ParentNode): Promise<void> {
  const blocks = [...place.querySelectorAll<HTMLElement>("pre > code[class]:not([data-coloured])")];
  const fresh = blocks.filter((one) => languageOf(one) && !colourKnown(one));
  if (fresh.length === 0) return;
  const [{ coloured }, { default: DOMPurify }] = await Promise.all([import("./languages"), import("dompurify")]);
  for (const block of fresh) {
    if (block.dataset["coloured"] !== undefined || colourKnown(block)) continue;
    const code = block.textContent;
    const html = code.length <= LONGEST ? coloured(code, languageOf(block)) : null;
    block.dataset["coloured"] = "";
    if (html === null) continue;
    known.set(nameOf(block), DOMPurify.sanitize(html, { ALLOWED_TAGS: ["span"], ALLOWED_ATTR: ["class"], RETURN_DOM_FRAGMENT: true }));
    if (known.size > MOST) known.delete(known.keys().next().value!);
    colourKnown(block);
    await new Promise((resolve) => setTimeout(resolve));
  }
}

const nameOf = (block: Element) => `${languageOf(block)}\n${block.textContent}`;

/** Highlight a block whose colours are stored; returns whether they are. */
function colourKnown(block: HTMLElement): boolean {
  const colours = known.get(nameOf(block));
  if (!colours) return false;
  block.dataset["coloured"] = "";
  block.replaceChildren(colours.cloneNode(true));
  return true;
}
