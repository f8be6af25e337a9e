import type { Step } from "../../events";
import type { RunModel } from "../../run";
import { words } from "../../words";
import { useService } from "../service";
import { type Ask, StepView } from "./StepView";

/** The plan as far as it has come. While the run works at it, steps can be skipped, done again, changed, added and moved. */
export function PlanList({ run, plan }: { run: RunModel; version: number; plan: { title: string; steps: Step[] } }) {
  const { acts } = useService();
  const ask: Ask | null = acts && run.status === "running" ? (change) => acts.changePlan(run, change) : null;
  const done = plan.steps.filter((step) => step.status === "completed" || step.status === "skipped").length;
  return (
    <section class={`plan ${run.isAtWork ? "live" : ""}`} aria-label={words.plan}>
      <h2>
        {plan.title} <span class="who">{`${done}/${plan.steps.length}`}</span>
      </h2>
      <ol>
        {plan.steps.map((step, at) => (
          <StepView key={step.id} steps={plan.steps} at={at} isOver={run.isOver} ask={ask} />
        ))}
      </ol>
    </section>
  );
}
