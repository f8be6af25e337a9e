import { filled } from "../../actionText";
import type { Decision } from "../../events";
import { texts } from "../../texts";

/** The maximum length of a hint, in characters. */
const SHOWN_HINT = 500;

/** The lead's decision after a failed step, in one line. */
export function DecisionView({ decision }: { decision: Decision }) {
  const { step_id: step, agent_name: member, hint } = decision;
  const text = filled(texts.decided[decision.decision] ?? decision.decision, { step, member });
  return (
    <p class="decided">
      <span aria-hidden="true">→ </span>
      {text} {hint && <span class="who">{filled("{hint}", { hint }, SHOWN_HINT)}</span>}
    </p>
  );
}
