import { useState } from "preact/hooks";
import { members } from "../../members";
import { words } from "../../words";

interface Draft {
  agent_name: string;
  title: string;
  description: string;
}

interface Edited {
  title: string;
  steps: Draft[];
}

/** A plan to be changed before it is accepted: its steps' words, members and order. */
export function PlanEditor({ plan, onPlan }: { plan: Edited; onPlan: (plan: Edited) => void }) {
  const [steps, setSteps] = useState(() => plan.steps.map(drafted));
  const replace = (at: number, ...by: Draft[]) => setSteps(steps.toSpliced(at, 1, ...by));
  const swap = (at: number) => setSteps(steps.toSpliced(at, 2, steps[at + 1]!, steps[at]!));
  const add = () => setSteps([...steps, { agent_name: steps.at(-1)?.agent_name ?? "reporter", title: "", description: "" }]);
  const isWhole = steps.length > 0 && steps.every((one) => one.title.trim() && one.description.trim());
  return (
    <>
      <ol class="steps">
        {steps.map((step, at) => (
          <li key={at}>
            <StepFields step={step} onStep={(changed) => replace(at, changed)} />
            <div class="row">
              <button disabled={at === 0} onClick={() => swap(at - 1)}>{words.up}</button>
              <button disabled={at === steps.length - 1} onClick={() => swap(at)}>{words.down}</button>
              <button onClick={() => replace(at)}>{words.drop}</button>
            </div>
          </li>
        ))}
      </ol>
      <div class="row">
        <button onClick={add}>{words.addStep}</button>
        <button class="main" disabled={!isWhole} onClick={() => onPlan({ title: plan.title, steps })}>{words.acceptEdited}</button>
      </div>
    </>
  );
}

function drafted({ agent_name, title, description }: Draft): Draft {
  return { agent_name, title, description };
}

function StepFields({ step, onStep }: { step: Draft; onStep: (step: Draft) => void }) {
  const known = members.value.map((one) => one.name);
  const names = known.includes(step.agent_name) ? known : [step.agent_name, ...known];
  return (
    <>
      <input aria-label={words.stepTitle} maxLength={500} value={step.title} onInput={(e) => onStep({ ...step, title: e.currentTarget.value })} />
      <textarea
        aria-label={words.stepWords}
        rows={2}
        value={step.description}
        onInput={(e) => onStep({ ...step, description: e.currentTarget.value })}
      />
      <select aria-label={words.member} value={step.agent_name} onChange={(e) => onStep({ ...step, agent_name: e.currentTarget.value })}>
        {names.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </>
  );
}
