import { openRuns, tick } from "../../conversation";
import type { Interrupt, StepQuestion } from "../../events";
import { keyOf } from "../../purpose";
import type { RunModel } from "../../run";
import { InterruptForm } from "./InterruptForm";

/** What waits for the user, above the composer: always inside the window, whatever the conversation shows. */
export function PendingForms() {
  void tick.value;
  return <FormsOf runs={openRuns()} />;
}

export function FormsOf({ runs }: { runs: readonly RunModel[] }) {
  const waiting = runs.flatMap((run) => run.forms.map((form) => ({ run, form })));
  if (waiting.length === 0) return null;
  return (
    <div class="pending">
      {waiting.map(({ run, form }) => (
        <InterruptForm key={keyOf(form)} run={run} waiting={form} asker={askerOf(run, form)} />
      ))}
    </div>
  );
}

/** Who asks while others go on, and at which step. */
export function askerOf({ plan }: RunModel, asked: Interrupt | StepQuestion): string | undefined {
  if (!("agent_name" in asked)) return undefined;
  const { agent_name, step_id } = asked;
  const title = plan?.steps.find((one) => one.id === step_id)?.title;
  return title ? `${agent_name} · ${title}` : agent_name;
}
