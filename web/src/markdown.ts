import MarkdownIt from "markdown-it";
import { withEvidence } from "./evidence";
import { figureAddress, figurePath } from "./figures";
import { withMath } from "./math";

/** A longer text is shown as plain text, because rendering it would take too long. */
export const MAX_MARKDOWN_LENGTH = 300_000;
const MAX_LINE_LENGTH = 20_000;
const markdown = new MarkdownIt({ html: false, linkify: true }).use(withMath).use(withEvidence);

// Model output is untrusted: a picture would load automatically and reveal the reader to its server.
markdown.renderer.rules.image = (tokens, index, _options, env) => {
  const { escapeHtml } = markdown.utils;
  const token = tokens[index]!;
  const url = String(token.attrGet("src") ?? "");
  const path = figurePath(url);
  const caption = escapeHtml(token.content);
  if (!path) return `<a href="${escapeHtml(url)}">${caption || escapeHtml(url)}</a>`;
  const runId = String(env?.["runId"] ?? "");
  if (!runId) return caption;
  const image = `<img src="${escapeHtml(figureAddress(runId, path))}" alt="${caption}">`;
  // As the service renders it in the finished report.
  return tokens.length > 1 ? image : `<span class="figure">${image}${caption && `<span class="caption">${caption}</span>`}</span>`;
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

  /** `runId` is the run whose figures the text shows; "" for none. */
  constructor(private readonly runId = "") {}

  take(text: string, isWritten: boolean): Grown {
    const whole = text.replace(/\r\n?/g, "\n");
    const isAnew = this.#isOver || !whole.startsWith(this.#settled) || (isWritten && this.#hasReferences);
    this.#isOver = isWritten;
    if (isAnew) this.#settled = "";
    const rest = whole.slice(this.#settled.length);
    const env: NonNullable<Parameters<typeof markdown.parse>[1]> = { runId: this.runId };
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
