import type { RunEvent } from "../events";

/** Nobody waits longer for the next event, in milliseconds. */
const LONGEST_GAP = 2_000;
/** How long an event is waited for when nobody knows when it happened, in milliseconds; the rest comes at once. */
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

/** When each event is shown, in milliseconds from the beginning of a play: at the run's own pace, without its waits. */
export function paced(events: readonly RunEvent[]): number[] {
  let now = 0;
  let newest: number | undefined;
  return events.map(({ type, at }) => {
    if (at === undefined) now += USUAL_GAPS[type] ?? 0;
    // What went on at the same time is told one by one: its times may go back.
    else now += Math.min(Math.max(at - (newest ?? at), 0) * 1_000, LONGEST_GAP);
    if (at !== undefined) newest = Math.max(newest ?? at, at);
    return now;
  });
}
