import { NOTE_FINDING, findingOf } from "./findings";
import type { Call } from "./parts";

/** The state of a call; `waits` means waiting for the user. */
export type Outcome = "open" | "waits" | "failed" | "done";

/** The parsed result of executed code. */
export interface CodeResult {
  out: string;
  err: string;
  /** The sandbox's notes: exit code and duration. */
  notes: string[];
  isFailed: boolean;
}

export interface SearchHit {
  title: string;
  /** Its web address; "" for a document of the folder that is searched. */
  url: string;
  content: string;
  /** Its number among the sources of the run. */
  cite: number | null;
}

export interface PageResult {
  title: string;
  url: string;
  cite: number | null;
  text: string;
}

export const RUNS_CODE = new Set(["python_repl_tool", "bash_tool"]);
const NOTE = /^\[(?:exit code |timeout: |took |figures drawn: |files written: |over \d|[A-Z].*\.\]$)/;
/** The notes of a program that failed. */
export const FAILURE = /^(?:exit code |timeout: )/;
const MAX_NOTES = 8;
const STDERR = "[stderr]\n";
/** The beginning of the result of a failed call; tools may report other failures in their own form. */
const FAILED = /^(?:\w*(?:Error|Exception|Exit|Interrupt)\b:? ?|The arguments do not fit|The tool failed|The program stopped while this ran|Error )/;
const OF_FILES = /^(?:There is no |\S+ exists\. |\S+ is (?:no directory|a binary file)|view_range |insert needs )/;
const WAITS = "Waits for the user.";

/** The state of a call: running, waiting, failed or done. The stream has no field for it, so the result's text decides. */
export function outcomeOf({ tool, result }: Pick<Call, "tool" | "result">): Outcome {
  if (result === null) return "open";
  if (result === WAITS) return "waits";
  return hasFailed(tool, result) ? "failed" : "done";
}

/** The beginning of the addresses of documents in the folder that is searched. */
const OF_FOLDER = "folder:";

/** The tools whose result is a JSON array of hits. */
export const SEARCHES = new Set(["tavily_search", "search_papers"]);

function hasFailed(tool: string, result: string): boolean {
  if (RUNS_CODE.has(tool)) return FAILED.test(result) || ranOf(result).isFailed;
  if (SEARCHES.has(tool)) return parsed(result) === undefined;
  if (tool === NOTE_FINDING) return findingOf({ tool, input: {}, result }) === null;
  if (tool === "crawl_tool") return pageOf(result) === null;
  return FAILED.test(result) || OF_FILES.test(result) || result.startsWith(`${tool} failed: `);
}

/** Parse a result of Python or bash: output, errors, and the lines in brackets at its end. */
export function ranOf(result: string): CodeResult {
  const notes: string[] = [];
  let rest = result;
  while (notes.length < MAX_NOTES) {
    const start = rest.lastIndexOf("\n") + 1;
    const line = rest.slice(start);
    if (!NOTE.test(line) || !line.endsWith("]")) break;
    notes.unshift(line.slice(1, -1));
    rest = rest.slice(0, Math.max(0, start - 1));
  }
  const at = rest.startsWith(STDERR) ? 0 : rest.indexOf(`\n${STDERR}`) + 1;
  const hasErrors = at > 0 || rest.startsWith(STDERR);
  const err = hasErrors ? rest.slice(at + STDERR.length) : "";
  const isFailed = notes.some((one) => FAILURE.test(one));
  return { out: hasErrors ? rest.slice(0, Math.max(0, at - 1)) : rest, err, notes, isFailed };
}

/** The line with the reason of a failed call. */
export function reasonOf({ tool, result }: Pick<Call, "tool" | "result">): string {
  if (result === null) return "";
  if (!RUNS_CODE.has(tool)) return firstLine(result);
  const { err, notes } = ranOf(result);
  const last = err.trimEnd().split("\n").at(-1)?.trim();
  return (last || notes.find((one) => FAILURE.test(one)) || firstLine(result)).slice(0, 500);
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0]!.slice(0, 500);
}

/** The hits of a search; none if its result is something else, such as an error. */
export function hitsOf(result: string): SearchHit[] {
  const found = parsed(result);
  if (!Array.isArray(found)) return [];
  return found.filter(isSearchHit).map(({ title, url, content, cite }) => ({
    title: typeof title === "string" ? title : "",
    url: isWeb(url) ? url : "",
    content: typeof content === "string" ? content : "",
    cite: typeof cite === "number" ? cite : null,
  }));
}

function isSearchHit(one: unknown): one is SearchHit {
  const url = (one as Partial<SearchHit> | null)?.url;
  return typeof url === "string" && (isWeb(url) || url.startsWith(OF_FOLDER));
}

function isWeb(url: string): boolean {
  return /^https?:\/\//i.test(url) && URL.canParse(url);
}

/** A page that was read, with title, address and text; null for anything else. */
export function pageOf(result: string): PageResult | null {
  const match = /^# ([^\n]*)\n\nSource(?: \[(\d+)\])?: (\S+)[^\n]*(?:\n\n|$)/.exec(result);
  if (!match || !isWeb(match[3]!)) return null;
  return { title: match[1]!, url: match[3]!, cite: match[2] ? Number(match[2]) : null, text: result.slice(match[0].length) };
}

/** The value of a JSON text; undefined if it is none. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
