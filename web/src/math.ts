import type { MarkdownIt } from "markdown-it";

const PAIRS: readonly [open: string, close: string, isDisplay: boolean][] = [
  ["$$", "$$", true],
  ["\\[", "\\]", true],
  ["\\(", "\\)", false],
  ["$", "$", false],
];
/** Environments that models write without a pair around them; as in `reading/formula_syntax.py`. */
const ENVIRONMENT =
  /^\\begin\{((?:equation|align(?:ed|at)?|flalign|gather(?:ed)?|multline|eqnarray|split|cases|array|displaymath|math|[bBpvV]?matrix|smallmatrix)\*?)\}/;
const LONGEST = 10_000;
/** What TeX has and the title of a page has not, in which brackets are escaped, too. */
const TEX = /\\[a-zA-Z]|(?<!\\)[\^_={}]/;

/** Make Markdown put TeX unchanged into `span.math`; `setMath` renders it later. */
export function withMath(markdown: MarkdownIt): void {
  markdown.inline.ruler.before("escape", "math", (state, silent) => {
    const rest = state.src.slice(state.pos, Math.min(state.posMax, state.pos + LONGEST));
    const pair = PAIRS.find(([open]) => rest.startsWith(open));
    if (!pair) {
      const environment = environmentAt(rest);
      if (environment === "") return false;
      if (!silent) Object.assign(state.push("math", "span", 0), { content: environment, info: "display" });
      state.pos += environment.length;
      return true;
    }
    const [open, close, isDisplay] = pair;
    const end = closingAt(rest, close, open.length);
    const tex = rest.slice(open.length, end);
    // Beside other text, `\[` may be an escaped bracket, as in titles of sources; `\[3\]` is the number of one.
    if (open === "\\[" && (/^\d+$/.test(tex) || (!TEX.test(tex) && !isAlone(state.src, state.pos, state.pos + end + close.length)))) return false;
    if (end < 0 || tex.trim() === "" || (open === "$" && isMoney(tex, rest.charAt(end + 1)))) return false;
    if (!silent) Object.assign(state.push("math", "span", 0), { content: tex, info: isDisplay ? "display" : "" });
    state.pos += end + close.length;
    return true;
  });
  markdown.renderer.rules["math"] = (tokens, index) => {
    const { content, info } = tokens[index]!;
    return `<span class="math ${info}">${markdown.utils.escapeHtml(content)}</span>`;
  };
}

/** The environment that a text begins with, or "". */
function environmentAt(text: string): string {
  const begin = ENVIRONMENT.exec(text);
  const close = begin ? `\\end{${begin[1]}}` : "";
  const end = begin ? text.indexOf(close, begin[0].length) : -1;
  return end < 0 ? "" : text.slice(0, end + close.length);
}

/** Where `close` stands, or -1; `\$` is a dollar sign of the formula. */
function closingAt(text: string, close: string, start: number): number {
  let end = text.indexOf(close, start);
  while (end >= 0 && close.startsWith("$") && isEscaped(text, end)) end = text.indexOf(close, end + 1);
  return end;
}

function isEscaped(text: string, at: number): boolean {
  let begin = at;
  while (text[begin - 1] === "\\") begin -= 1;
  return (at - begin) % 2 === 1;
}

/** Whether a text from `start` to `end` has no other text on its lines but punctuation. */
function isAlone(text: string, start: number, end: number): boolean {
  const before = text.slice(Math.max(0, start - 20), start);
  return /(?:^|\n)[ \t]*$/.test(before) && !/^[^\p{L}\p{N}_\n]*[\p{L}\p{N}_]/u.test(text.slice(end, end + 200));
}

/** Whether the text between two dollar signs is prose about prices. */
function isMoney(tex: string, next: string): boolean {
  return /^\s|\s$|\n/.test(tex) || /\d/.test(next);
}

/** Replace the TeX in `place` by MathML; `formulas.css` has its font. */
export async function setMath(place: ParentNode): Promise<void> {
  const waiting = [...place.querySelectorAll<HTMLElement>("span.math")];
  if (waiting.length === 0) return;
  const { default: katex } = await import("katex");
  for (const one of waiting) {
    const displayMode = one.classList.contains("display");
    const tex = one.textContent ?? "";
    one.replaceChildren();
    katex.render(tex, one, { output: "mathml", displayMode, throwOnError: false, maxExpand: 200, maxSize: 20 });
  }
}
