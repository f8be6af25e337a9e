/** A plan that waits for its review, and what a person has changed in it. */

import type { Interrupt } from "./events";
import { labelled, listed, texts } from "./texts";

/** A step of a plan in review. `needs` are the numbers, from 1, of the steps whose results it gets; all if null. */
export interface PlannedStep {
  agent_name: string;
  title: string;
  description: string;
  note?: string | null;
  needs?: number[] | null;
  repeats?: boolean | null;
}

/** When a step begins, by the numbers of others, from 1: after these, and beside those. */
export interface StepOrder {
  after: number[];
  beside: number[];
}

export interface PlannedSteps {
  title: string;
  steps: PlannedStep[];
  /** Per step; empty if they run one by one. */
  order?: StepOrder[];
}

/** The plan in the question of its review, whose steps have notes; null for another question. */
export function reviewedPlan(waiting: Interrupt | null): PlannedSteps | null {
  if (waiting?.kind !== "plan_review") return null;
  const plan = waiting.payload["plan"] as Partial<PlannedSteps> | undefined;
  const order = (waiting.payload["order"] ?? []) as StepOrder[];
  return plan?.steps ? { title: plan.title ?? "", steps: plan.steps, order } : null;
}

/** Each step of an edited plan with what differs from the plan in review, and the steps that were removed; titles alone where that plan is unknown. */
export function describeEditedPlan(before: readonly PlannedStep[] | null, after: readonly PlannedStep[]): string[] {
  if (before === null) return after.map((step, at) => `${at + 1}. ${step.title}`);
  // A report that repeats a result is not in the editor.
  const left = before.filter((step) => !step.repeats);
  const origins = matched(left, after);
  const lines = after.flatMap((step, at) => {
    const needs = changedNeeds({ before, after, origins }, at);
    return [`${at + 1}. ${step.title}`, ...[...differences(origins[at], step), ...needs].map((line) => `    ${line}`)];
  });
  const removed = left.filter((step) => !origins.includes(step)).map((step) => texts.editedPlan.removed(step.title));
  return [...lines, ...removed];
}

/** For each edited step the one that it was: of the same title, else of the same description; undefined for a new one. */
function matched(before: readonly PlannedStep[], after: readonly PlannedStep[]): (PlannedStep | undefined)[] {
  const free = new Set(before);
  const origins: (PlannedStep | undefined)[] = after.map(() => undefined);
  for (const isSame of [
    (one: PlannedStep, other: PlannedStep) => one.title === other.title,
    (one: PlannedStep, other: PlannedStep) => one.description === other.description,
  ]) {
    after.forEach((step, at) => {
      origins[at] ??= [...free].find((one) => isSame(one, step));
      if (origins[at]) free.delete(origins[at]);
    });
  }
  return origins;
}

function differences(before: PlannedStep | undefined, after: PlannedStep): string[] {
  const { added, was } = texts.editedPlan;
  const description = labelled(texts.stepWords, after.description);
  const note = labelled(texts.stepNote, after.note ?? "");
  if (!before) return [`${added} (${after.agent_name})`, description, ...(after.note ? [note] : [])];
  const lines: string[] = [];
  if (before.title !== after.title) lines.push(was(before.title));
  if (before.description !== after.description) lines.push(description);
  if (before.agent_name !== after.agent_name) lines.push(labelled(texts.member, `${before.agent_name} → ${after.agent_name}`));
  if ((before.note ?? "") !== (after.note ?? "")) lines.push(note);
  return lines;
}

interface Comparison {
  before: readonly PlannedStep[];
  after: readonly PlannedStep[];
  /** Per edited step the one that it was. */
  origins: readonly (PlannedStep | undefined)[];
}

/** What an edited step waits for, if that is not what it was; a removed step is named elsewhere. */
function changedNeeds({ before, after, origins }: Comparison, at: number): string[] {
  const step = after[at]!;
  const origin = origins[at];
  const needs = step.needs ?? null;
  if (needs === null && (origin?.needs ?? null) === null) return [];
  const places = needed(after, at);
  const now = places.map((place) => origins[place] ?? after[place]!);
  const past = origin && needed(before, before.indexOf(origin)).map((place) => before[place]!);
  const left = past?.filter((one) => origins.includes(one));
  if (left && left.length === now.length && left.every((one) => now.includes(one))) return [];
  const { allBefore, noStep } = texts.editedPlan;
  const titles = listed(places.map((place) => `“${after[place]!.title}”`)) || noStep;
  return [labelled(texts.waitsFor, needs === null ? allBefore : titles)];
}

/** The places, from 0, of the steps whose results a step gets: of those before it. */
function needed(steps: readonly PlannedStep[], at: number): number[] {
  const { needs } = steps[at]!;
  return steps.slice(0, at).flatMap((_, place) => (needs?.includes(place + 1) ?? true ? [place] : []));
}
