import { signal } from "@preact/signals";
import type { RunModel } from "./run";
import { follow } from "./stream";

/** Whether the stream of a followed run is lost and being reconnected. */
export const isOffline = signal(false);
const followed = new Map<RunModel, AbortController>();
const cutOff = new Set<RunModel>();

export function isFollowed(run: RunModel): boolean {
  return followed.has(run);
}

/** Follow a run until all events are received or it is released; `onEvent` is called with each event. Throws `Refusal` like `follow`. */
export async function followOne(run: RunModel, onEvent: () => void): Promise<void> {
  const leaving = new AbortController();
  followed.set(run, leaving);
  const connected = (isConnected: boolean) => note(run, !isConnected && !leaving.signal.aborted);
  try {
    await follow(run, { onEvent, connected }, leaving.signal);
  } finally {
    if (followed.get(run) === leaving) followed.delete(run);
    note(run, false);
  }
}

/** Stop following the runs that `which` selects. */
export function unfollow(which: (run: RunModel) => boolean = () => true): void {
  for (const [run, leaving] of followed) {
    if (!which(run)) continue;
    followed.delete(run);
    leaving.abort();
    note(run, false);
  }
}

function note(run: RunModel, isCutOff: boolean): void {
  if (isCutOff) cutOff.add(run);
  else cutOff.delete(run);
  isOffline.value = cutOff.size > 0;
}
