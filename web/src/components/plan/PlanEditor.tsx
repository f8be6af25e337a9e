import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { PlannedStep, PlannedSteps } from "../../editedPlan";
import { useFormDraft } from "../../formDrafts";
import { texts } from "../../texts";
import { type Draft, StepFields, drafted } from "./StepFields";

/** A step with a key that stays the same while steps are added, removed and moved. */
interface Keyed extends Draft {
  key: number;
  needs: number[] | null;
}

/** What gets the focus after the next rendering. */
interface Focus {
  key: number;
  place: "up" | "down" | "title";
}

interface Editor {
  /** The name under which unsent changes are stored. */
  form: string;
  /** Whether the user has just opened it. */
  takesFocus: boolean;
  plan: PlannedSteps;
  onPlan: (plan: PlannedSteps) => void;
  onCancel: () => void;
}

/** An editor for the texts, members and order of a plan before it is accepted. */
export function PlanEditor({ form, takesFocus, plan, onPlan, onCancel }: Editor) {
  const [steps, setSteps] = useFormDraft<Keyed[]>(form, () => plan.steps.map(keyed));
  const [said, setSaid] = useState("");
  const next = useRef(Math.max(-1, ...steps.map((one) => one.key)) + 1);
  const list = useRef<HTMLOListElement>(null);
  const focus = useRef<Focus | null>(takesFocus && steps[0] ? { key: steps[0].key, place: "title" } : null);
  // Before the next event, because a later effect would take the focus that a move has just set.
  useLayoutEffect(() => {
    if (focus.current && list.current) give(list.current, focus.current);
    focus.current = null;
  }, [steps]);

  const move = (at: number, to: number) => {
    const step = steps[at]!;
    setSteps(steps.toSpliced(at, 1).toSpliced(to, 0, step));
    setSaid(texts.stepMoved(step.title, to + 1, steps.length));
    focus.current = { key: step.key, place: to < at ? "up" : "down" };
  };
  const drop = (at: number) => {
    const neighbour = steps[at + 1] ?? steps[at - 1];
    setSteps(steps.toSpliced(at, 1));
    setSaid(texts.stepDropped(steps[at]!.title));
    focus.current = neighbour ? { key: neighbour.key, place: "title" } : null;
  };
  const add = () => {
    const key = next.current++;
    // The report stays last; a new step is inserted before it.
    const at = steps.at(-1)?.agent_name === "reporter" ? steps.length - 1 : steps.length;
    const agent_name = steps[at - 1]?.agent_name ?? "researcher";
    setSteps(steps.toSpliced(at, 0, { agent_name, title: "", description: "", note: "", key, needs: null }));
    focus.current = { key, place: "title" };
  };
  const isWhole = steps.length > 0 && steps.every((one) => one.title.trim() && one.description.trim());
  return (
    <>
      <ol class="steps" ref={list}>
        {steps.map((step, at) => (
          <li key={step.key} data-key={step.key}>
            <StepFields step={step} onStep={(changed) => setSteps(steps.toSpliced(at, 1, { ...step, ...changed }))} />
            {at > 0 && step.agent_name !== "reporter" && (
              <Needs step={step} earlier={steps.slice(0, at)} onNeeds={(needs) => setSteps(steps.toSpliced(at, 1, { ...step, needs }))} />
            )}
            <div class="row">
              <button class="up" disabled={at === 0} onClick={() => move(at, at - 1)}>{texts.up}</button>
              <button class="down" disabled={at === steps.length - 1} onClick={() => move(at, at + 1)}>{texts.down}</button>
              <button onClick={() => drop(at)}>{texts.drop}</button>
            </div>
          </li>
        ))}
      </ol>
      <p class="unseen" role="status">{said}</p>
      <p class="faint">{texts.editedPlanHint}</p>
      <div class="row">
        <button onClick={add}>{texts.addStep}</button>
        <button class="main" disabled={!isWhole} onClick={() => onPlan({ title: plan.title, steps: planned(steps) })}>
          {texts.acceptEdited}
        </button>
        <button onClick={onCancel}>{texts.cancelEdit}</button>
      </div>
    </>
  );
}

/** The earlier steps that a step waits for, to be chosen. */
function Needs({ step, earlier, onNeeds }: { step: Keyed; earlier: readonly Keyed[]; onNeeds: (needs: number[]) => void }) {
  const numbers = earlier.map((one) => one.key + 1);
  const chosen = numbers.filter((number) => step.needs?.includes(number) ?? true);
  return (
    <fieldset class="needs">
      <legend>{texts.waitsFor}</legend>
      {earlier.map((one, at) => (
        <label key={one.key}>
          <input
            type="checkbox"
            checked={chosen.includes(numbers[at]!)}
            onChange={(e) => onNeeds(numbers.filter((number) => (number === numbers[at] ? e.currentTarget.checked : chosen.includes(number))))}
          />
          {at + 1} {one.title}
        </label>
      ))}
    </fieldset>
  );
}

function keyed(step: PlannedStep, key: number): Keyed {
  return { ...drafted(step), note: step.note ?? "", key, needs: step.needs ?? null };
}

/** The edited steps. A step no longer needs one that was removed or now comes later. */
function planned(steps: readonly Keyed[]): PlannedStep[] {
  return steps.map((step, at) => {
    const places = step.needs?.map((number) => steps.findIndex((one) => one.key === number - 1));
    const needs = places?.filter((place) => place >= 0 && place < at).map((place) => place + 1);
    const note = step.note?.trim();
    return { ...drafted(step), ...(note && { note }), ...(needs && { needs }) };
  });
}

/** Focus a step's button, or the opposite button if it is disabled. */
function give(list: HTMLElement, { key, place }: Focus): void {
  const step = list.querySelector(`[data-key="${key}"]`);
  const wanted = place === "title" ? "input" : `button.${place}:not(:disabled), button.up:not(:disabled), button.down:not(:disabled)`;
  const found = [...(step?.querySelectorAll<HTMLElement>(wanted) ?? [])];
  (found.find((one) => one.classList.contains(place)) ?? found[0])?.focus();
}
