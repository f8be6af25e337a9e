import type { Step } from "../../events";
import { words } from "../../words";

const SIGNS: Record<string, string> = {
  completed: "✓",
  failed: "✕",
  skipped: "–",
  in_progress: "●",
  blocked: "‖",
};

export function PlanList({ plan }: { plan: { title: string; steps: Step[] } }) {
  return (
    <section class="plan" aria-label={words.plan}>
      <h2>{plan.title}</h2>
      <ol>
        {plan.steps.map((step) => (
          <li key={step.id} class={step.status}>
            <span class="sign" aria-hidden="true">{SIGNS[step.status] ?? "○"}</span>
            <details>
              <summary>
                {step.title} <span class="who">{step.agent_name}</span>
                <span class="unseen">, {words.status[step.status] ?? step.status}</span>
              </summary>
              <p>{step.description}</p>
            </details>
            {step.reason && <p class="reason">{step.reason}</p>}
          </li>
        ))}
      </ol>
    </section>
  );
}
