import mermaidUrl from "@mermaid-js/tiny?url";
import { texts } from "./texts";

/** The supported kinds of diagrams; the cost of some others cannot be limited by their text. */
const KINDS = new Set(
  `flowchart graph sequenceDiagram classDiagram classDiagram-v2 stateDiagram stateDiagram-v2 erDiagram gantt pie journey
  timeline gitGraph quadrantChart xychart xychart-beta sankey sankey-beta kanban`.split(/\s+/),
);
/** Longer sources are not drawn, because not all browsers run a frame in its own thread. */
const LONGEST = 3_000;
const MAX_STATEMENTS = 80;
/** Syntax by which a short text can cause much work. */
const COSTLY = /^[ \t]*(?:excludes|tickInterval)\b/m;
const MAX_PICTURE_LENGTH = 2_000_000;
const PATIENCE_MS = 10_000;
const MAX_REASON_LENGTH = 300;
const MAX_KEPT = 60;

let frame: HTMLIFrameElement | undefined;
let queue: Promise<string> = Promise.resolve("");
const known = new Map<string, Promise<string>>();

/**
 * Draw Mermaid `code`, one diagram at a time, and return the URL of the picture. Rejects with a message for the user if
 * it cannot be drawn.
 *
 * Mermaid runs in a sandboxed frame without origin and network, with its own content security policy. The result is
 * only shown as a picture, which cannot run or load anything.
 */
export async function draw(code: string, isDark: boolean): Promise<string> {
  const plain = withoutSettings(code);
  const statements = plain.split(/[\n;&]/).length;
  if (!KINDS.has(kindOf(code)) || COSTLY.test(plain)) throw new Error(texts.diagramUnknown);
  if (plain.length > LONGEST || statements > MAX_STATEMENTS) throw new Error(texts.diagramTooLong);
  const name = `${isDark} ${plain}`;
  const drawn = known.get(name) ?? (queue = queue.catch(() => undefined).then(() => ask(plain, isDark)).then(picture));
  known.set(name, drawn);
  if (known.size > MAX_KEPT) forget(known.keys().next().value!);
  return drawn;
}

/** The kind of diagram that `code` declares. */
export function kindOf(code: string): string {
  return /[\w-]+/.exec(withoutSettings(code).replace(/^[ \t]*%%.*$/gm, ""))?.[0] ?? "";
}

/** Diagrams cannot change settings such as colours. */
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
      reject(new Error(texts.diagramTooSlow));
    }, PATIENCE_MS);
  });
  const answer = new Promise<unknown>((resolve) => (port1.onmessage = ({ data }) => resolve(data)));
  try {
    const drawing = await Promise.race([opened(), slow]);
    // The frame has no origin to address; only it has the other port.
    drawing.contentWindow?.postMessage({ code, isDark }, "*", [port2]);
    return svgOf(await Promise.race([answer, slow]));
  } finally {
    clearTimeout(timer);
    port1.close();
  }
}

function svgOf(answer: unknown): string {
  const { svg, error } = (answer ?? {}) as { svg?: unknown; error?: unknown };
  if (typeof svg === "string" && svg.startsWith("<svg") && svg.length <= MAX_PICTURE_LENGTH) return svg;
  throw new Error(`${texts.diagramBroken} ${String(error ?? "").slice(0, MAX_REASON_LENGTH)}`.trim());
}

async function opened(): Promise<HTMLIFrameElement> {
  if (frame) return frame;
  const made = Object.assign(document.createElement("iframe"), { className: "drawing", title: texts.diagram, tabIndex: -1 });
  made.setAttribute("sandbox", "allow-scripts");
  made.setAttribute("aria-hidden", "true");
  made.src = `./diagram.html#${new URL(mermaidUrl, document.baseURI).pathname}`;
  const loaded = new Promise((resolve) => (made.onload = resolve));
  document.body.append((frame = made));
  await loaded;
  return made;
}

/** Remove the frame, which also stops its work. */
function close(): void {
  frame?.remove();
  frame = undefined;
}
