import type { MarkdownIt, Token } from "markdown-it";

/** What the service writes behind a statement of a report that no source bears out. */
export const MARK = "[unverified]";
/** Most numbers in one pair of brackets that are read. */
const MOST = 30;
/** The number of a source; what may be a year is none. */
const NUMBER = /\^?(?!(?:1[89]|20)\d\d(?!\d))\d{1,4}/.source;
/** `[3]`, `[1, 2]`, `[4–6]`, `【3】`: how a report cites its sources. */
const CITATION = new RegExp(`[[【［] ?${NUMBER}(?: ?[,;、，–-] ?${NUMBER}){0,29} ?[\\]】］]`);

/** Let Markdown keep citations in `span.cite` and marks in `span.unverified`, but not in code or links. */
export function withEvidence(markdown: MarkdownIt): void {
  // Before links: what stands in parentheses behind a mark must not make a link of it.
  markdown.inline.ruler.before("link", "unverified", (state, silent) => {
    if (!state.src.startsWith(MARK, state.pos)) return false;
    if (!silent) state.push("unverified", "span", 0);
    state.pos += MARK.length;
    return true;
  });
  // Before the texts are joined, what was escaped stands in tokens of its own, and is no citation.
  markdown.core.ruler.before("text_join", "citations", (state) => {
    for (const block of state.tokens) if (block.children) block.children = cited(block.children, state.Token);
  });
  markdown.renderer.rules["unverified"] = () => `<span class="unverified">${MARK.slice(1, -1)}</span>`;
  markdown.renderer.rules["citation"] = (tokens, index) => `<span class="cite">${tokens[index]!.content}</span>`;
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

/** The numbers that a citation names, each once; none where it holds no number of a source. */
export function numbersIn(citation: string): number[] {
  const numbers = new Set<number>();
  for (const part of citation.replaceAll("–", "-").match(/\d+(?: ?- ?\^?\d+)*/g) ?? []) {
    const ends = part.match(/\d+/g)!.map(Number);
    // Three in a row are a date.
    if (ends.length > 2) return [];
    const [first, last] = [Math.min(...ends), Math.max(...ends)];
    for (let number = first; number <= last && numbers.size < MOST; number += 1) if (number > 0) numbers.add(number);
  }
  return [...numbers];
}
