import type { Step } from "../../events";
import { texts } from "../../texts";
import type { PlanChange } from "../service";

/** A change of a step: immediate, or by a form. */
export interface Offer {
  name: string;
  change: PlanChange | "edit" | "add";
}

/** The possible changes of the step at this position of a running plan. The service decides whether to accept them. */
export function offersFor(steps: readonly Step[], at: number): Offer[] {
  const { id, status, agent_name } = steps[at]!;
  const isLast = at === steps.length - 1;
  const [before, after] = [steps[at - 1], steps[at + 1]];
  const offers: (Offer | false | undefined)[] = [
    agent_name !== "reporter" && status !== "skipped" && { name: texts.skip, change: { action: "skip", step_id: id } },
    status !== "not_started" && { name: texts.redo, change: { action: "redo", step_id: id } },
    { name: texts.editStep, change: "edit" },
    isToCome(steps[at]) &&
      isToCome(before) &&
      !isLast && { name: texts.up, change: { action: "move", step_id: id, after: steps[at - 2]?.id ?? 0 } },
    isToCome(steps[at]) && after && at < steps.length - 2 && { name: texts.down, change: { action: "move", step_id: id, after: after.id } },
    !isLast && { name: texts.addAfter, change: "add" },
  ];
  return offers.filter((one) => one !== false && one !== undefined);
}

function isToCome(step: Step | undefined): boolean {
  return step?.status === "not_started" || step?.status === "blocked";
}
