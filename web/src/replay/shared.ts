import type { Clock, Service } from "../components/service";
import type { RunEvent } from "../events";

/** The run in a replay file. */
export interface Shared {
  runId: string;
  question: string;
  /** The status of the run when the file was created. */
  status: string;
  /** Why the run failed; "" if it did not. */
  error: string;
  /** The start of the run in Unix seconds. */
  createdAt: number;
  events: RunEvent[];
  /** What the file has no room for, and the events of it that are no JSON objects. */
  leftOut: { events: number; pictures: number; unreadable: number };
}

/** Read the run from the file's data blocks; malformed data is ignored. */
export function sharedIn(file: ParentNode): Shared {
  const run = objectOf(textOf(file, "run"));
  const leftOut = objectOf(textOf(file, "left-out"));
  const lines = textOf(file, "events").split("\n").filter(Boolean);
  const events = readable(lines);
  return {
    runId: String(run["run_id"] ?? ""),
    question: String(run["question"] ?? ""),
    status: String(run["status"] ?? ""),
    error: String(run["error"] ?? ""),
    createdAt: Number(run["created_at"]),
    events: events.map(eventOf),
    leftOut: {
      events: Number(leftOut["events"]) || 0,
      pictures: Number(leftOut["pictures"]) || 0,
      unreadable: lines.length - events.length,
    },
  };
}

/** The service for a run in a file: it has the enclosed data and no actions. */
export function serviceIn(file: ParentNode, clock: Clock): Service {
  const enclosed = new Map(readable(textOf(file, "enclosures").split("\n")).map((one) => [one["path"], String(one["content"])]));
  return {
    ask: async (path) => responseOf(enclosed.get(path) ?? absent(path)),
    has: (path) => enclosed.has(path),
    attempt: (work) => work().then(() => true, () => false),
    acts: null,
    clock,
  };
}

function absent(path: string): never {
  throw new Error(`${path} is not in this file.`);
}

/** The content of a `data:` URL, which the file's policy does not allow to fetch. */
function responseOf(address: string): Response {
  const [head = "", content = ""] = address.split(",", 2);
  const bytes = Uint8Array.from(atob(content), (sign) => sign.charCodeAt(0));
  return new Response(bytes, { headers: { "content-type": head.replace(/^data:|;base64$/g, "") } });
}

function eventOf({ id, type, at, data }: Record<string, unknown>): RunEvent {
  return { ...(data as object), type, id, ...(typeof at === "number" ? { at } : {}) } as RunEvent;
}

function readable(lines: string[]): Record<string, unknown>[] {
  return lines.map(objectOf).filter((one) => Object.keys(one).length > 0);
}

function textOf(file: ParentNode, id: string): string {
  return file.querySelector(`#${id}`)?.textContent ?? "";
}

function objectOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === "object" ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
