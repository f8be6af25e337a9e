import { EventSourceParserStream } from "eventsource-parser/stream";
import { Refusal, ask } from "./api";
import { agreeWith } from "./clock";
import type { RunEvent } from "./events";
import type { RunModel } from "./run";
import { createPacer } from "./scheduling";

const FIRST_WAIT_MS = 250;
const MAX_WAIT_MS = 5_000;

const reconnecting = new EventTarget();

/** Reconnect lost streams now. */
export function reconnectNow(): void {
  reconnecting.dispatchEvent(new Event("now"));
}

export interface Listener {
  /** An event was added to the model. */
  onEvent(): void;
  /** The stream was lost or restored. */
  connected(isConnected: boolean): void;
}

/**
 * Follow a run from the last event in its model until it has ended or waits, reconnecting as often as necessary.
 * Throws `Refusal` if the service does not allow the page to follow.
 */
export async function follow(run: RunModel, listener: Listener, signal: AbortSignal): Promise<void> {
  let wait = FIRST_WAIT_MS;
  while (!signal.aborted) {
    const before = run.lastId;
    let isWhole = false;
    try {
      await listen(run, listener, signal);
      isWhole = true;
    } catch (error) {
      if (signal.aborted) return;
      // Errors that the service will repeat are not retried immediately.
      if (error instanceof Refusal && error.status < 500 && error.status !== 429) throw error;
    }
    // If there are no more events of a run that ended or waits, all have been received.
    if (isWhole && run.lastId === before && !run.isAtWork) run.close();
    if (run.isComplete || signal.aborted) return;
    if (run.lastId > before) wait = FIRST_WAIT_MS;
    listener.connected(false);
    await pause(wait, signal);
    wait = Math.min(wait * 2, MAX_WAIT_MS);
  }
}

async function listen(run: RunModel, listener: Listener, signal: AbortSignal): Promise<void> {
  const headers = { "last-event-id": String(run.lastId) };
  const response = await ask(`/api/runs/${run.runId}/events?view=live&timed=true`, { headers, signal, cache: "no-store" });
  agreeWith(response.headers.get("date"));
  listener.connected(true);
  if (!response.body) return;
  const frames = response.body
    .pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array<ArrayBuffer>, string>)
    .pipeThrough(new EventSourceParserStream())
    .getReader();
  const pace = createPacer();
  for (;;) {
    const { done, value } = await frames.read();
    if (done) return;
    // A closing event has no number, because it is not part of the run.
    const id = value.id ? Number(value.id) : null;
    run.apply({ ...JSON.parse(value.data), type: value.event, id } as RunEvent);
    listener.onEvent();
    await pace();
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      reconnecting.removeEventListener("now", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    signal.addEventListener("abort", end);
    reconnecting.addEventListener("now", end);
  });
}
