/** A longer block is not highlighted, because that would take too long. */
const LONGEST = 20_000;
const NAME = /(?:^|\s)language-([\w+#-]+)/;

/** The language that a code block declares; "" for none. */
export function languageOf(code: Element): string {
  return NAME.exec(code.className)?.[1]?.toLowerCase() ?? "";
}

/** Highlight the code blocks in `place` one by one, so that the page stays responsive. */
export async function highlight(place: ParentNode): Promise<void> {
  const blocks = [...place.querySelectorAll<HTMLElement>("pre > code[class]:not([data-coloured])")].filter((one) => languageOf(one));
  if (blocks.length === 0) return;
  const [{ coloured }, { default: DOMPurify }] = await Promise.all([import("./languages"), import("dompurify")]);
  for (const block of blocks) {
    block.dataset["coloured"] = "";
    const code = block.textContent;
    const html = code.length <= LONGEST ? coloured(code, languageOf(block)) : null;
    if (html === null) continue;
    block.replaceChildren(DOMPurify.sanitize(html, { ALLOWED_TAGS: ["span"], ALLOWED_ATTR: ["class"], RETURN_DOM_FRAGMENT: true }));
    await new Promise((resolve) => setTimeout(resolve));
  }
}
