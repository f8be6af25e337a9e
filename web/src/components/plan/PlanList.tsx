import type { Step } from "../../events";
import { countDone } from "../../planProgress";
import type { RunModel } from "../../run";
import { texts } from "../../texts";
import { useService } from "../service";
import { GapReviews } from "./GapReviews";
import { reviewedPlan } from "../../editedPlan";
import { waitsOf } from "../../stepOrder";
import { type Ask, StepView } from "./StepView";
import { outcomeOf } from "./StepOutcome";

/** The plan with its progress, also while it is written. During the run, steps can be skipped, repeated, edited, added and moved. */
export function PlanList({ run, plan }: { run: RunModel; version: number; plan: { title: string; steps: Step[] } }) {
  const { acts } = useService();
  const isDraft = plan === run.draft;
  const ask: Ask | null = acts && run.status === "running" && !isDraft ? (change) => acts.changePlan(run, change) : null;
  // A report that only repeats another step's result is not shown.
  const worked = plan.steps.filter((step) => !step.repeats);
  // The events of a plan have no notes.
  const reviewed = reviewedPlan(run.status === "interrupted" ? run.waiting : null);
  const waits = isDraft ? [] : waitsOf(run, plan.steps);
  const { done, all } = countDone(plan.steps);
  return (
    <section class={`plan ${run.isAtWork ? "live" : ""}`} aria-label={texts.plan}>
      <h2>
        {plan.title} <span class="who">{isDraft ? texts.planDraft : `${done}/${all}`}</span>
      </h2>
      <ol>
        {worked.map((step) => (
          <StepView
            key={step.id}
            runId={run.runId}
            steps={plan.steps}
            at={plan.steps.indexOf(step)}
            waits={waits[plan.steps.indexOf(step)] ?? ""}
            note={reviewed?.steps[plan.steps.indexOf(step)]?.note ?? ""}
            findings={run.findingsOf(step.id)}
            outcome={outcomeOf(run.turns, step)}
            isOver={run.isOver}
            ask={ask}
          />
        ))}
      </ol>
      <GapReviews reviews={run.reviews} />
    </section>
  );
}
