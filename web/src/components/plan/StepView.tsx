import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Step } from "../../events";
import type { Finding } from "../../findings";
import type { Turn } from "../../parts";
import { dropFormDraft, hasFormDraft, useFormDraft } from "../../formDrafts";
import { isSkippedByUser } from "../../planProgress";
import { labelled, texts } from "../../texts";
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
  runId: string;
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

const FORMS = ["edit", "add"] as const;
type FormKind = (typeof FORMS)[number];
const FIELDS = ["agent_name", "title", "description"] as const;

/** A step of a plan with its status and a menu of changes. */
export function StepView({ runId, steps, at, note, waits, findings, outcome, isOver, ask }: Shown) {
  const step = steps[at]!;
  const [isOpen, setOpen] = useState(false);
  const names = { edit: `edit ${runId} ${step.id}`, add: `add ${runId} ${step.id}` };
  const [form, setForm] = useState<FormKind | null>(() => FORMS.find((kind) => hasFormDraft(names[kind])) ?? null);
  // A form that comes back with its draft leaves the focus where it is.
  const takesFocus = useRef(false);
  // The requested change is shown until the changed plan arrives.
  const [changed, setChanged] = useState<Step | null>(null);
  const place = useRef<HTMLLIElement>(null);
  const askNow = async (change: PlanChange) => {
    const isTaken = ask !== null && (await ask(change));
    if (isTaken) setChanged(step);
    return isTaken;
  };
  const choose = (kind: FormKind) => {
    takesFocus.current = true;
    setForm(kind);
  };
  const leave = (kind: FormKind) => {
    dropFormDraft(names[kind]);
    setForm(null);
    requestAnimationFrame(() => place.current?.querySelector<HTMLElement>(".menu-button")?.focus());
  };
  const choices = offersFor(steps, at).map(({ name, change }) => ({
    name,
    act: () => (typeof change === "string" ? choose(change) : void askNow(change)),
  }));
  // A run that ended early leaves its current step in progress.
  const status = isOver && step.status === "in_progress" ? "unfinished" : step.status;
  return (
    <li class={status} ref={place}>
      <span class="sign" aria-hidden="true">{SIGNS[status] ?? "○"}</span>
      {form === "edit" && ask ? (
        <StepForm key="edit" form={names.edit} takesFocus={takesFocus} step={step} onEnd={() => leave("edit")} onSave={(draft) => askNow(edited(step, draft))} />
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
            {note && <p>{labelled(texts.stepNote, note)}</p>}
            {isOpen && outcome && <StepOutcome turn={outcome} version={outcome.version} />}
          </details>
          {ask && <StepMenu title={step.title} choices={choices} />}
        </>
      )}
      {form === "add" && ask && (
        <StepForm
          key="add"
          form={names.add}
          takesFocus={takesFocus}
          step={{ agent_name: step.agent_name, title: "", description: "" }}
          onEnd={() => leave("add")}
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
  /** The name under which unsent changes are stored. */
  form: string;
  /** Whether the user has just opened it. */
  takesFocus: RefObject<boolean>;
  step: Draft;
  onEnd: () => void;
  /** Returns whether the change was accepted; otherwise the user can correct it. */
  onSave: (draft: Draft) => Promise<boolean>;
}

/** A form for the texts and the member of a running or new step. */
function StepForm({ form, takesFocus, step, onEnd, onSave }: Form) {
  // Only what the user has changed: the rest of the step may change meanwhile.
  const [written, setWritten] = useFormDraft<Partial<Draft>>(form, () => ({}));
  const draft = { ...drafted(step), ...written };
  const write = (to: Draft) => setWritten(Object.fromEntries(FIELDS.flatMap((name) => (name in written || to[name] !== step[name] ? [[name, to[name]]] : []))));
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (takesFocus.current) first.current?.focus();
    takesFocus.current = false;
  }, []);
  const isSame = draft.title === step.title && draft.description === step.description && draft.agent_name === step.agent_name;
  const save = async (event: Event) => {
    event.preventDefault();
    if (isSame || (await onSave(draft))) onEnd();
  };
  return (
    <form class="step-form" onSubmit={(e) => void save(e)} onKeyDown={(e) => e.key === "Escape" && onEnd()}>
      <StepFields step={draft} onStep={write} first={first} />
      <div class="row">
        <button class="main" disabled={!draft.title.trim() || !draft.description.trim()}>{texts.save}</button>
        <button type="button" onClick={onEnd}>{texts.cancelEdit}</button>
      </div>
    </form>
  );
}
