import type { RunEvent } from "../events";

/** The longest pause between two events, in milliseconds. */
const MAX_GAP_LENGTH = 2_000;
/** The pause before an event without a time, in milliseconds. */
const USUAL_GAPS: Record<string, number> = {
  message: 30,
  plan: 500,
  start_of_agent: 400,
  tool_call: 400,
  tool_output: 200,
  tool_call_result: 600,
  browser_state: 300,
  browser_step: 400,
};

/** The time of each event in milliseconds from the start of the replay: at the run's pace, without its waits. */
export function playbackTimes(events: readonly RunEvent[]): number[] {
  let now = 0;
  let newest: number | undefined;
  return events.map(({ type, at }) => {
    if (at === undefined) now += USUAL_GAPS[type] ?? 0;
    // Concurrent events are in sequence, so times may decrease.
    else now += Math.min(Math.max(at - (newest ?? at), 0) * 1_000, MAX_GAP_LENGTH);
    if (at !== undefined) newest = Math.max(newest ?? at, at);
    return now;
  });
}
