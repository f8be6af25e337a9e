import DOMPurify from "dompurify";
import MarkdownIt from "markdown-it";
import { withEvidence } from "./evidence";
import { figurePath } from "./figures";
import { withMath } from "./math";

/** A longer text is shown as plain text, because rendering it would take too long. */
export const MAX_MARKDOWN_LENGTH = 300_000;
const MAX_LINE_LENGTH = 20_000;
const TAGS = (
  "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr ul"
).split(" ");

const markdown = new MarkdownIt({ html: false, linkify: true }).use(withMath).use(withEvidence);

// Model output is untrusted: a picture would load automatically and reveal the reader to its server.
markdown.renderer.rules.image = (tokens, index) => {
  const { escapeHtml } = markdown.utils;
  const token = tokens[index]!;
  const url = String(token.attrGet("src") ?? "");
  const path = figurePath(url);
  if (path) return `<span class="figure" data-path="${escapeHtml(path)}">${escapeHtml(token.content)}</span>`;
  return `<a href="${escapeHtml(url)}">${escapeHtml(token.content || url)}</a>`;
};
// Columns are aligned by classes, because the page's policy forbids inline styles.
markdown.core.ruler.push("align", (state) => {
  for (const token of state.tokens) {
    const side = /^text-align:(\w+)$/.exec(String(token.attrGet("style") ?? ""));
    if (side) token.attrs = [["class", side[1]!]];
  }
});

/** Whether a text is rendered as Markdown; otherwise it is shown as plain text. */
export function isReadable(text: string): boolean {
  if (text.length > MAX_MARKDOWN_LENGTH) return false;
  let start = 0;
  for (let end = text.indexOf("\n"); end >= 0; start = end + 1, end = text.indexOf("\n", start)) {
    if (end - start > MAX_LINE_LENGTH) return false;
  }
  return text.length - start <= MAX_LINE_LENGTH;
}

/** The rendering of a growing text: HTML of the final blocks, and of the last one, which may change. */
export interface Grown {
  /** Whether the earlier HTML is invalid. */
  isAnew: boolean;
  settled: string;
  open: string;
}

/**
 * A growing text as HTML. Only its last block is rendered again: earlier blocks no longer change, except for links whose
 * address is defined below them.
 */
export class GrowingText {
  #settled = "";
  #hasReferences = false;
  #isOver = false;

  take(text: string, isWritten: boolean): Grown {
    const whole = text.replace(/\r\n?/g, "\n");
    const isAnew = this.#isOver || !whole.startsWith(this.#settled) || (isWritten && this.#hasReferences);
    this.#isOver = isWritten;
    if (isAnew) this.#settled = "";
    const rest = whole.slice(this.#settled.length);
    const env: NonNullable<Parameters<typeof markdown.parse>[1]> = {};
    const tokens = markdown.parse(rest, env);
    this.#hasReferences ||= Object.keys(env.references ?? {}).length > 0;
    const last = isWritten ? tokens.length : Math.max(0, tokens.findLastIndex((one) => one.level === 0 && one.nesting >= 0));
    this.#settled += isWritten ? rest : linesOf(rest, tokens[last]?.map?.[0] ?? 0);
    const html = (some: typeof tokens) => markdown.renderer.render(some, markdown.options, env);
    return { isAnew, settled: html(tokens.slice(0, last)), open: html(tokens.slice(last)) };
  }
}

/** The first `count` lines of `text` with their line ends. */
function linesOf(text: string, count: number): string {
  let end = 0;
  for (let line = 0; line < count; line += 1) end = text.indexOf("\n", end) + 1;
  return text.slice(0, end);
}

/** HTML as safe elements that load and run nothing; links open in a new tab. */
export function harmless(html: string): DocumentFragment {
  const fragment = DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ["href", "title", "class", "start", "data-path"],
    ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const link of fragment.querySelectorAll("a")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer";
  }
  return fragment;
}
