import type { MarkdownIt, Token } from "markdown-it";

/** The service's mark after an unverified statement of a report. */
export const MARK = "[unverified]";
/** The number of a source; years and footnotes (`[^1]`) do not match. */
const NUMBER = /(?!(?:1[89]|20)\d\d(?!\d))\d{1,4}/.source;
/** `[3]`, `[1, 2]`, `[4–6]`, `【3】`: how a report cites its sources. */
const CITATION = new RegExp(`[[【［] ?${NUMBER}(?: ?[,;、，–-] ?${NUMBER}){0,29} ?[\\]】］]`);

/** Make Markdown put citations into `span.citation` and marks into `mark`, except in code and links. */
export function withEvidence(markdown: MarkdownIt): void {
  // Before links: parentheses after a mark must not turn it into a link.
  markdown.inline.ruler.before("link", "unverified", (state, silent) => {
    if (!state.src.startsWith(MARK, state.pos)) return false;
    if (!silent) state.push("unverified", "span", 0);
    state.pos += MARK.length;
    return true;
  });
  // Before texts are joined, escaped brackets are separate tokens and therefore no citations.
  markdown.core.ruler.before("text_join", "citations", (state) => {
    for (const block of state.tokens) if (block.children) block.children = cited(block.children, state.Token);
  });
  markdown.renderer.rules["unverified"] = () => `<mark>${MARK.slice(1, -1)}</mark>`;
  markdown.renderer.rules["citation"] = (tokens, index) => `<span class="citation">${tokens[index]!.content}</span>`;
}

function cited(tokens: readonly Token[], Made: typeof Token): Token[] {
  let links = 0;
  return tokens.flatMap((token) => {
    if (token.type === "link_open") links += 1;
    if (token.type === "link_close") links -= 1;
    if (token.type !== "text" || links > 0 || !CITATION.test(token.content)) return [token];
    return token.content.split(new RegExp(`(${CITATION.source})`)).map((content, index) => {
      return Object.assign(new Made(index % 2 ? "citation" : "text", "", 0), { content, level: token.level });
    });
  });
}
