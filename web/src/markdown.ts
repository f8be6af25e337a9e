import DOMPurify from "dompurify";
import MarkdownIt from "markdown-it";
import { withMath } from "./math";

/** A longer text is shown as it is: no browser lays it out as Markdown in good time. */
export const LONGEST_MARKDOWN = 300_000;
const LONGEST_LINE = 20_000;
const TAGS = (
  "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr ul"
).split(" ");

const markdown = new MarkdownIt({ html: false, linkify: true }).use(withMath);

// Models write after reading strangers' pages: a picture would load by itself and tell them who reads.
markdown.renderer.rules.image = (tokens, index) => {
  const { escapeHtml } = markdown.utils;
  const token = tokens[index]!;
  const url = String(token.attrGet("src") ?? "");
  return `<a href="${escapeHtml(url)}">${escapeHtml(token.content || url)}</a>`;
};
// Columns are aligned by classes: the page's policy takes no styles from a text.
markdown.core.ruler.push("align", (state) => {
  for (const token of state.tokens) {
    const side = /^text-align:(\w+)$/.exec(String(token.attrGet("style") ?? ""));
    if (side) token.attrs = [["class", side[1]!]];
  }
});

/** Whether a text is laid out as Markdown; what is not is shown letter by letter. */
export function isReadable(text: string): boolean {
  if (text.length > LONGEST_MARKDOWN) return false;
  let start = 0;
  for (let end = text.indexOf("\n"); end >= 0; start = end + 1, end = text.indexOf("\n", start)) {
    if (end - start > LONGEST_LINE) return false;
  }
  return text.length - start <= LONGEST_LINE;
}

/** Markdown as elements that neither load nor run anything; links open beside the page. */
export function rendered(text: string): DocumentFragment {
  const fragment = DOMPurify.sanitize(markdown.render(text), {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ["href", "title", "class", "start"],
    ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const link of fragment.querySelectorAll("a")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer";
  }
  return fragment;
}
