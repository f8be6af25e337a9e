import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { words } from "../../words";
import { type Draft, StepFields, drafted } from "./StepFields";

interface Edited {
  title: string;
  steps: Draft[];
}

/** A step with a key that stays the same while steps are added, removed and moved. */
interface Keyed extends Draft {
  key: number;
}

/** What gets the focus after the next rendering. */
interface Focus {
  key: number;
  place: "up" | "down" | "title";
}

/** An editor for the texts, members and order of a plan before it is accepted. */
export function PlanEditor({ plan, onPlan }: { plan: Edited; onPlan: (plan: Edited) => void }) {
  const [steps, setSteps] = useState<Keyed[]>(() => plan.steps.map((step, key) => ({ ...drafted(step), key })));
  const [said, setSaid] = useState("");
  const next = useRef(steps.length);
  const list = useRef<HTMLOListElement>(null);
  const focus = useRef<Focus | null>(null);
  // Before the next event, because a later effect would take the focus that a move has just set.
  useLayoutEffect(() => {
    if (focus.current && list.current) give(list.current, focus.current);
    focus.current = null;
  }, [steps]);

  const move = (at: number, to: number) => {
    const step = steps[at]!;
    setSteps(steps.toSpliced(at, 1).toSpliced(to, 0, step));
    setSaid(words.stepMoved(step.title, to + 1, steps.length));
    focus.current = { key: step.key, place: to < at ? "up" : "down" };
  };
  const drop = (at: number) => {
    const neighbour = steps[at + 1] ?? steps[at - 1];
    setSteps(steps.toSpliced(at, 1));
    setSaid(words.stepDropped(steps[at]!.title));
    focus.current = neighbour ? { key: neighbour.key, place: "title" } : null;
  };
  const add = () => {
    const key = next.current++;
    // The report stays last; a new step is inserted before it.
    const at = steps.at(-1)?.agent_name === "reporter" ? steps.length - 1 : steps.length;
    const agent_name = steps[at - 1]?.agent_name ?? "researcher";
    setSteps(steps.toSpliced(at, 0, { agent_name, title: "", description: "", key }));
    focus.current = { key, place: "title" };
  };
  const isWhole = steps.length > 0 && steps.every((one) => one.title.trim() && one.description.trim());
  return (
    <>
      <ol class="steps" ref={list}>
        {steps.map((step, at) => (
          <li key={step.key} data-key={step.key}>
            <StepFields step={step} onStep={(changed) => setSteps(steps.toSpliced(at, 1, { ...changed, key: step.key }))} />
            <div class="row">
              <button class="up" disabled={at === 0} onClick={() => move(at, at - 1)}>{words.up}</button>
              <button class="down" disabled={at === steps.length - 1} onClick={() => move(at, at + 1)}>{words.down}</button>
              <button onClick={() => drop(at)}>{words.drop}</button>
            </div>
          </li>
        ))}
      </ol>
      <p class="unseen" role="status">{said}</p>
      <div class="row">
        <button onClick={add}>{words.addStep}</button>
        <button class="main" disabled={!isWhole} onClick={() => onPlan({ title: plan.title, steps: steps.map(drafted) })}>
          {words.acceptEdited}
        </button>
      </div>
    </>
  );
}

/** Focus a step's button, or the opposite button if it is disabled. */
function give(list: HTMLElement, { key, place }: Focus): void {
  const step = list.querySelector(`[data-key="${key}"]`);
  const wanted = place === "title" ? "input" : `button.${place}:not(:disabled), button.up:not(:disabled), button.down:not(:disabled)`;
  const found = [...(step?.querySelectorAll<HTMLElement>(wanted) ?? [])];
  (found.find((one) => one.classList.contains(place)) ?? found[0])?.focus();
}
