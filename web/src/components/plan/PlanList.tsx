import { useEffect, useRef, useState } from "preact/hooks";
import type { Step } from "../../events";
import type { RunModel } from "../../run";
import { words } from "../../words";
import { type PlanChange, useService } from "../service";
import { type Draft, StepFields, drafted } from "./StepFields";
import { type Choice, StepMenu } from "./StepMenu";

const SIGNS: Record<string, string> = {
  completed: "✓",
  failed: "✕",
  skipped: "–",
  in_progress: "●",
  blocked: "‖",
};

type Ask = (change: PlanChange) => Promise<boolean>;

/** The plan as far as it has come. While the run works at it, each step can be skipped, done again, or made another one. */
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
        {plan.steps.map((step) => (
          <StepView key={step.id} step={step} isOver={run.isOver} ask={ask} />
        ))}
      </ol>
    </section>
  );
}

function StepView({ step, isOver, ask }: { step: Step; isOver: boolean; ask: Ask | null }) {
  const [isEdited, setEdited] = useState(false);
  // What was asked for stands until the plan is told again: the service takes it up between two steps.
  const [changed, setChanged] = useState<Step | null>(null);
  const place = useRef<HTMLLIElement>(null);
  const askNow: Ask | null = ask && ((change) => ask(change).then((isTaken) => (isTaken && setChanged(step), isTaken)));
  const leave = () => {
    setEdited(false);
    requestAnimationFrame(() => place.current?.querySelector<HTMLElement>(".menu-button")?.focus());
  };
  // A run that was ended leaves the step that it was at as it stood.
  const status = isOver && step.status === "in_progress" ? "unfinished" : step.status;
  return (
    <li class={status} ref={place}>
      <span class="sign" aria-hidden="true">{SIGNS[status] ?? "○"}</span>
      {isEdited && askNow ? (
        <StepForm step={step} ask={askNow} onEnd={leave} />
      ) : (
        <>
          <details>
            <summary>
              {step.title} <span class="who">{step.agent_name}</span>
              <span class="unseen">, {words.status[status] ?? status}</span>
            </summary>
            <p>{step.description}</p>
          </details>
          {askNow && <StepMenu title={step.title} choices={choicesOf(step, askNow, () => setEdited(true))} />}
        </>
      )}
      <p class="change" role="status">{changed === step && !isOver && words.changeTaken}</p>
      {step.reason && <p class="reason">{step.reason}</p>}
    </li>
  );
}

/** What can be asked of a step; whether it is done is for the service to say. */
function choicesOf({ id, status, agent_name }: Step, ask: Ask, edit: () => void): Choice[] {
  const to = (action: "skip" | "redo") => () => void ask({ action, step_id: id });
  return [
    ...(agent_name === "reporter" || status === "skipped" ? [] : [{ name: words.skip, act: to("skip") }]),
    ...(status === "not_started" ? [] : [{ name: words.redo, act: to("redo") }]),
    { name: words.editStep, act: edit },
  ];
}

/** A step under way as other words, or for another member; it is done anew then. */
function StepForm({ step, ask, onEnd }: { step: Step; ask: Ask; onEnd: () => void }) {
  const [draft, setDraft] = useState<Draft>(() => drafted(step));
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.focus(), []);
  const save = async (event: Event) => {
    event.preventDefault();
    const changed = Object.entries(draft).filter(([name, text]) => text !== step[name as keyof Draft]);
    if (changed.length === 0 || (await ask({ action: "edit", step_id: step.id, ...Object.fromEntries(changed) }))) onEnd();
  };
  return (
    <form class="step-form" onSubmit={(e) => void save(e)} onKeyDown={(e) => e.key === "Escape" && onEnd()}>
      <StepFields step={draft} onStep={setDraft} first={first} />
      <div class="row">
        <button class="main" disabled={!draft.title.trim() || !draft.description.trim()}>{words.save}</button>
        <button type="button" onClick={onEnd}>{words.cancelEdit}</button>
      </div>
    </form>
  );
}
