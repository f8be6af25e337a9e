import DOMPurify from "dompurify";

/** A longer block stays as it is: its colours would cost more than they help. */
const LONGEST = 20_000;
const NAME = /(?:^|\s)language-([\w+#-]+)/;

/** The language that a block of code says it is in; "" where it says none. */
export function languageOf(code: Element): string {
  return NAME.exec(code.className)?.[1]?.toLowerCase() ?? "";
}

/** Colour the code in `place` whose language is known, block by block, so that the page stays at hand. */
export async function highlight(place: ParentNode): Promise<void> {
  const blocks = [...place.querySelectorAll("pre > code[class]")].filter((one) => languageOf(one));
  if (blocks.length === 0) return;
  const { coloured } = await import("./languages");
  for (const block of blocks) {
    const code = block.textContent;
    const html = code.length <= LONGEST ? coloured(code, languageOf(block)) : null;
    if (html === null) continue;
    block.replaceChildren(DOMPurify.sanitize(html, { ALLOWED_TAGS: ["span"], ALLOWED_ATTR: ["class"], RETURN_DOM_FRAGMENT: true }));
    await new Promise((resolve) => setTimeout(resolve));
  }
}
