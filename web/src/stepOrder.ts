/** When the steps of a plan begin, and who waits for whom. */

import { type StepOrder, reviewedPlan } from "./editedPlan";
import type { Step } from "./events";
import type { RunModel } from "./run";
import { listed, texts } from "./texts";

const TO_BEGIN = new Set(["not_started", "blocked"]);

/** What each step of the plan waits for, in words: the user, other steps, or a free place; "" for nothing. */
export function waitsOf(run: RunModel, steps: readonly Step[]): string[] {
  if (run.isOver) return steps.map(() => "");
  const asking = askingSteps(run);
  // In a review the service says it; it also knows which steps share a resource.
  const order = reviewedPlan(run.status === "interrupted" ? run.waiting : null)?.order;
  return steps.map((step, at) => {
    if (asking.has(step.id)) return texts.status["interrupted"]!;
    return TO_BEGIN.has(step.status) ? describeOrder(steps, at, order?.[at] ?? orderNow(steps, at)) : "";
  });
}

/** The ids of the steps that wait for the user. */
function askingSteps({ status, waiting, plan, questions }: RunModel): ReadonlySet<number> {
  if (status !== "interrupted") return new Set(questions.map((one) => one.step_id));
  // Nothing else is under way then. The review of a plan is the question of no step.
  const steps = waiting?.kind === "plan_review" ? [] : (plan?.steps ?? []);
  return new Set(steps.filter((step) => step.status === "in_progress").map((step) => step.id));
}

/** The steps that are not over among those whose results a step gets. */
function orderNow(steps: readonly Step[], at: number): StepOrder {
  const { needs } = steps[at]!;
  return { after: openBefore(steps, at).filter((number) => needs?.includes(steps[number - 1]!.id) ?? true), beside: [] };
}

function describeOrder(steps: readonly Step[], at: number, { after, beside }: StepOrder): string {
  if (beside.length > 0) return texts.togetherWith(titles(steps, beside));
  const before = openBefore(steps, at);
  if (after.length > 1 && after.length === before.length) return texts.waitsForAllAbove;
  if (after.length > 0) return texts.waitsForSteps(titles(steps, after));
  // More steps could run than may run concurrently.
  const isNext = before.length === 0 && steps.every((one) => one.status !== "in_progress");
  return isNext ? "" : texts.waitsForFreePlace;
}

/** The numbers, from 1, of the steps above one that are not over. */
function openBefore(steps: readonly Step[], at: number): number[] {
  return steps.slice(0, at).flatMap(({ status }, place) => (status === "in_progress" || TO_BEGIN.has(status) ? [place + 1] : []));
}

/** The titles of steps by their numbers, from 1. */
function titles(steps: readonly Step[], numbers: readonly number[]): string {
  return listed(numbers.map((number) => `“${steps[number - 1]?.title ?? number}”`));
}
