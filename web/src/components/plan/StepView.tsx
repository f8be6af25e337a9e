import { useEffect, useRef, useState } from "preact/hooks";
import type { Step } from "../../events";
import type { Finding } from "../../findings";
import type { Turn } from "../../parts";
import { isSkippedByUser } from "../../planProgress";
import { texts } from "../../texts";
import type { PlanChange } from "../service";
import { Findings } from "../work/FindingView";
import { offersFor } from "./changes";
import { StepOutcome } from "./StepOutcome";
import { type Draft, StepFields, drafted } from "./StepFields";
import { StepMenu } from "./StepMenu";

export type Ask = (change: PlanChange) => Promise<boolean>;

const SIGNS: Record<string, string> = {
  completed: "✓",
  failed: "✕",
  skipped: "–",
  in_progress: "●",
  blocked: "‖",
};

interface Shown {
  steps: Step[];
  at: number;
  /** A warning or a limit, in a plan that waits for its review; "" for none. */
  note: string;
  /** What it waits for, in words; "" for nothing. */
  waits: string;
  /** What its member noted. */
  findings: readonly Finding[];
  /** The turn whose result it has; undefined before there is one. */
  outcome: Turn | undefined;
  isOver: boolean;
  /** Null if the plan cannot be changed. */
  ask: Ask | null;
}

/** A step of a plan with its status and a menu of changes. */
export function StepView({ steps, at, note, waits, findings, outcome, isOver, ask }: Shown) {
  const step = steps[at]!;
  const [isOpen, setOpen] = useState(false);
  const [form, setForm] = useState<"edit" | "add" | null>(null);
  // The requested change is shown until the changed plan arrives.
  const [changed, setChanged] = useState<Step | null>(null);
  const place = useRef<HTMLLIElement>(null);
  const askNow = async (change: PlanChange) => {
    const isTaken = ask !== null && (await ask(change));
    if (isTaken) setChanged(step);
    return isTaken;
  };
  const leave = () => {
    setForm(null);
    requestAnimationFrame(() => place.current?.querySelector<HTMLElement>(".menu-button")?.focus());
  };
  const choices = offersFor(steps, at).map(({ name, change }) => ({
    name,
    act: () => (typeof change === "string" ? setForm(change) : void askNow(change)),
  }));
  // A run that ended early leaves its current step in progress.
  const status = isOver && step.status === "in_progress" ? "unfinished" : step.status;
  return (
    <li class={status} ref={place}>
      <span class="sign" aria-hidden="true">{SIGNS[status] ?? "○"}</span>
      {form === "edit" && ask ? (
        <StepForm step={step} onEnd={leave} onSave={(draft) => askNow(edited(step, draft))} />
      ) : (
        <>
          <details open={isOpen} onToggle={(e) => setOpen(e.currentTarget.open)}>
            <summary>
              {step.title} <span class="who">{step.agent_name}</span>
              {waits && <span class="who"> · {waits}</span>}
              {findings.length > 0 && <span class="who"> · {texts.findings(findings.length)}</span>}
              <span class="unseen">, {texts.status[status] ?? status}</span>
            </summary>
            <p>{step.description}</p>
            {findings.length > 0 && <Findings findings={findings} />}
            {note && <p>{texts.stepNote}: {note}</p>}
            {isOpen && outcome && <StepOutcome turn={outcome} version={outcome.version} />}
          </details>
          {ask && <StepMenu title={step.title} choices={choices} />}
        </>
      )}
      {form === "add" && ask && (
        <StepForm
          step={{ agent_name: step.agent_name, title: "", description: "" }}
          onEnd={leave}
          onSave={(draft) => askNow({ action: "add", after: step.id, ...draft })}
        />
      )}
      <p class="change" role="status">{changed === step && !isOver && texts.changeTaken}</p>
      {step.reason && (isSkippedByUser(step) ? <p class="change">{texts.skippedByYou}</p> : <p class="reason">{step.reason}</p>)}
    </li>
  );
}

function edited(step: Step, draft: Draft): PlanChange {
  const changes = Object.entries(draft).filter(([name, text]) => text !== step[name as keyof Step]);
  return { action: "edit", step_id: step.id, ...Object.fromEntries(changes) };
}

interface Form {
  step: Draft;
  onEnd: () => void;
  /** Returns whether the change was accepted; otherwise the user can correct it. */
  onSave: (draft: Draft) => Promise<boolean>;
}

/** A form for the texts and the member of a running or new step. */
function StepForm({ step, onEnd, onSave }: Form) {
  const [draft, setDraft] = useState(() => drafted(step));
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.focus(), []);
  const isSame = draft.title === step.title && draft.description === step.description && draft.agent_name === step.agent_name;
  const save = async (event: Event) => {
    event.preventDefault();
    if (isSame || (await onSave(draft))) onEnd();
  };
  return (
    <form class="step-form" onSubmit={(e) => void save(e)} onKeyDown={(e) => e.key === "Escape" && onEnd()}>
      <StepFields step={draft} onStep={setDraft} first={first} />
      <div class="row">
        <button class="main" disabled={!draft.title.trim() || !draft.description.trim()}>{texts.save}</button>
        <button type="button" onClick={onEnd}>{texts.cancelEdit}</button>
      </div>
    </form>
  );
}
