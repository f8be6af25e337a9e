import type { Step } from "./events";

/** The reason of a step that the user skipped, as the service has it (`scope/inputs.py`). */
const SKIPPED = "the user skipped it";

/** How many steps of a plan are done, of those that are to be done: without skipped ones, and reports that repeat a result. */
export function countDone(steps: readonly Step[]): { done: number; all: number } {
  const counted = steps.filter((step) => !step.repeats && step.status !== "skipped");
  return { done: counted.filter((step) => step.status === "completed").length, all: counted.length };
}

/** Whether the user skipped a step, and not the team. */
export function isSkippedByUser({ status, reason }: Step): boolean {
  return status === "skipped" && reason === SKIPPED;
}
