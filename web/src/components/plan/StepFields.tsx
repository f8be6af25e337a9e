import type { RefObject } from "preact";
import { members } from "../../members";
import { texts } from "../../texts";

/** The fields of a step: title, description and member; the note only where it can be edited, "" for none. */
export interface Draft {
  agent_name: string;
  title: string;
  description: string;
  note?: string;
}

interface Given {
  step: Draft;
  onStep: (step: Draft) => void;
  first?: RefObject<HTMLInputElement | null>;
}

export function StepFields({ step, onStep, first }: Given) {
  const known = members.value.map((one) => one.name);
  const names = known.includes(step.agent_name) ? known : [step.agent_name, ...known];
  return (
    <>
      <input
        ref={first ?? null}
        aria-label={texts.stepTitle}
        placeholder={texts.stepTitle}
        maxLength={500}
        value={step.title}
        onInput={(e) => onStep({ ...step, title: e.currentTarget.value })}
      />
      <textarea
        aria-label={texts.stepWords}
        placeholder={texts.stepWords}
        rows={2}
        maxLength={10_000}
        value={step.description}
        onInput={(e) => onStep({ ...step, description: e.currentTarget.value })}
      />
      {step.note !== undefined && (
        <input
          aria-label={texts.stepNote}
          placeholder={texts.stepNote}
          maxLength={2_000}
          value={step.note}
          onInput={(e) => onStep({ ...step, note: e.currentTarget.value })}
        />
      )}
      <select aria-label={texts.member} value={step.agent_name} onChange={(e) => onStep({ ...step, agent_name: e.currentTarget.value })}>
        {names.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </>
  );
}

export function drafted({ agent_name, title, description }: Omit<Draft, "note">): Draft {
  return { agent_name, title, description };
}
