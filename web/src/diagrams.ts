import mermaidUrl from "@mermaid-js/tiny?url";
import { words } from "./words";

/** What is drawn; of the other kinds some have no bound that their text shows. */
const KINDS = new Set(
  `flowchart graph sequenceDiagram classDiagram classDiagram-v2 stateDiagram stateDiagram-v2 erDiagram gantt pie journey
  timeline gitGraph quadrantChart xychart xychart-beta sankey sankey-beta kanban`.split(/\s+/),
);
/** Longer sources are not drawn: not every browser gives a frame a thread of its own. */
const LONGEST = 3_000;
const MOST_STATEMENTS = 80;
/** What lets few words ask for much work. */
const COSTLY = /^[ \t]*(?:excludes|tickInterval)\b/m;
const LONGEST_PICTURE = 2_000_000;
const PATIENCE_MS = 10_000;
const LONGEST_REASON = 300;
const MOST_KEPT = 60;

let frame: HTMLIFrameElement | undefined;
let queue: Promise<string> = Promise.resolve("");
const known = new Map<string, Promise<string>>();

/**
 * Draw Mermaid's `code`, one at a time; the address of the picture. Rejects with what to tell the reader where it
 * cannot be drawn.
 *
 * Mermaid works in a sandboxed frame without an origin or a network, under a policy of its own; what comes back is
 * only shown as a picture, in which nothing runs or loads.
 */
export async function draw(code: string, isDark: boolean): Promise<string> {
  const plain = withoutSettings(code);
  const statements = plain.split(/[\n;&]/).length;
  if (!KINDS.has(kindOf(code)) || COSTLY.test(plain)) throw new Error(words.diagramUnknown);
  if (plain.length > LONGEST || statements > MOST_STATEMENTS) throw new Error(words.diagramTooLong);
  const name = `${isDark} ${plain}`;
  const drawn = known.get(name) ?? (queue = queue.catch(() => undefined).then(() => ask(plain, isDark)).then(picture));
  known.set(name, drawn);
  if (known.size > MOST_KEPT) forget(known.keys().next().value!);
  return drawn;
}

/** What kind of diagram `code` says it is. */
export function kindOf(code: string): string {
  return /[\w-]+/.exec(withoutSettings(code).replace(/^[ \t]*%%.*$/gm, ""))?.[0] ?? "";
}

/** A diagram does not choose its colours here, nor anything else that a setting does. */
function withoutSettings(code: string): string {
  return code.replace(/^\s*---[ \t]*\n[\s\S]*?\n[ \t]*---[ \t]*(?:\n|$)/, "").replace(/%%\{[\s\S]*?(?:\}%%|$)/g, "");
}

function picture(svg: string): string {
  return URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
}

function forget(name: string): void {
  known.get(name)?.then((url) => URL.revokeObjectURL(url), () => undefined);
  known.delete(name);
}

async function ask(code: string, isDark: boolean): Promise<string> {
  const { port1, port2 } = new MessageChannel();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const slow = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      close();
      reject(new Error(words.diagramTooSlow));
    }, PATIENCE_MS);
  });
  const answer = new Promise<unknown>((resolve) => (port1.onmessage = ({ data }) => resolve(data)));
  try {
    const drawing = await Promise.race([opened(), slow]);
    // The frame has no origin that could be named; only it has the other end.
    drawing.contentWindow?.postMessage({ code, isDark }, "*", [port2]);
    return svgOf(await Promise.race([answer, slow]));
  } finally {
    clearTimeout(timer);
    port1.close();
  }
}

function svgOf(answer: unknown): string {
  const { svg, error } = (answer ?? {}) as { svg?: unknown; error?: unknown };
  if (typeof svg === "string" && svg.startsWith("<svg") && svg.length <= LONGEST_PICTURE) return svg;
  throw new Error(`${words.diagramBroken} ${String(error ?? "").slice(0, LONGEST_REASON)}`.trim());
}

async function opened(): Promise<HTMLIFrameElement> {
  if (frame) return frame;
  const made = Object.assign(document.createElement("iframe"), { className: "drawing", title: words.diagram, tabIndex: -1 });
  made.setAttribute("sandbox", "allow-scripts");
  made.setAttribute("aria-hidden", "true");
  made.src = `./diagram.html#${new URL(mermaidUrl, document.baseURI).pathname}`;
  const loaded = new Promise((resolve) => (made.onload = resolve));
  document.body.append((frame = made));
  await loaded;
  return made;
}

/** Take away the frame, and with it whatever it is still at. */
function close(): void {
  frame?.remove();
  frame = undefined;
}
