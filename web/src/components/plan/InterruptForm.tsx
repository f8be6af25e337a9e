import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type PlannedSteps, reviewedPlan } from "../../editedPlan";
import type { Interrupt } from "../../events";
import { dropFormDraft, hasFormDraft } from "../../formDrafts";
import { formName, titleOf } from "../../purpose";
import type { RunModel } from "../../run";
import { texts } from "../../texts";
import { useOnce } from "../ActionButton";
import { type Acts, useService } from "../service";
import { Approval, AskedCall } from "./Approval";
import { InWords } from "./InWords";
import { PlanEditor } from "./PlanEditor";

/** How long a form takes no click after it has appeared, in milliseconds: the click was for what stood there before. */
const SETTLING_MS = 500;

interface Waits {
  run: RunModel;
  waiting: Interrupt;
  answer: (reply: unknown) => Promise<boolean>;
}

/** The question of a run, or of one of its steps: a form, or only its text if it cannot be answered here. */
export function InterruptForm({ run, waiting, asker }: Omit<Waits, "answer"> & { asker?: string | undefined }) {
  const { acts } = useService();
  const error = waiting.payload["error"];
  return (
    <section class="interrupt" aria-label={titleOf(waiting)}>
      <h2>{titleOf(waiting)}</h2>
      {asker && <p class="faint">{asker}</p>}
      {typeof error === "string" && <p class="notice bad">{error}</p>}
      {typeof waiting.payload["unclear"] === "string" && <p class="notice bad">{texts.unclear}</p>}
      {acts ? <Answering run={run} waiting={waiting} answer={acts.answer} /> : <Asked waiting={waiting} />}
    </section>
  );
}

/** A form that submits one answer at a time. */
function Answering({ run, waiting, answer }: Omit<Waits, "answer"> & { answer: Acts["answer"] }) {
  const [isUnderWay, once] = useOnce();
  const [isNew, setNew] = useState(true);
  useEffect(() => {
    const timer = setTimeout(() => setNew(false), SETTLING_MS);
    return () => clearTimeout(timer);
  }, []);
  const give: Waits["answer"] = async (reply) => {
    let isTaken = false;
    await once(async () => (isTaken = await answer(run, waiting, reply)));
    return isTaken;
  };
  return (
    <fieldset class={isNew ? "new" : ""} disabled={isUnderWay || isNew}>
      <Form run={run} waiting={waiting} answer={give} />
    </fieldset>
  );
}

function Form(waits: Waits) {
  if (waits.waiting.kind === "plan_review") return <Review {...waits} />;
  return waits.waiting.kind === "question" ? <Question {...waits} /> : <Approval {...waits} />;
}

function Asked({ waiting }: { waiting: Interrupt }) {
  const { kind, payload } = waiting;
  if (kind === "question") return <p>{String(payload["question"] ?? "")}</p>;
  if (kind === "plan_review") return null;
  return <AskedCall waiting={waiting} />;
}

/** The editable steps, without a report that repeats a result, which the service adds again. */
function editable({ run, waiting }: Waits): PlannedSteps {
  const plan: PlannedSteps = reviewedPlan(waiting) ?? run.plan ?? { title: "", steps: [] };
  return { title: plan.title, steps: plan.steps.filter((step) => !step.repeats) };
}

function Review(waits: Waits) {
  const { answer } = waits;
  const form = formName(waits);
  const [wasEdited] = useState(hasFormDraft(form));
  const [isEdited, setEdited] = useState(wasEdited);
  const accept = async (plan: PlannedSteps) => void ((await answer(plan)) && dropFormDraft(form));
  const edit = useRef<HTMLButtonElement>(null);
  const isDiscarded = useRef(false);
  useLayoutEffect(() => {
    if (isDiscarded.current) edit.current?.focus();
    isDiscarded.current = false;
  }, [isEdited]);
  const cancel = () => {
    dropFormDraft(form);
    isDiscarded.current = true;
    setEdited(false);
  };
  if (isEdited) return <PlanEditor form={form} takesFocus={!wasEdited} plan={editable(waits)} onPlan={(plan) => void accept(plan)} onCancel={cancel} />;
  return (
    <div class="row">
      <button class="main" onClick={() => void answer("accept")}>{texts.accept}</button>
      <button ref={edit} onClick={() => setEdited(true)}>{texts.editPlan}</button>
      <InWords run={waits.run} waiting={waits.waiting} name={texts.ask} />
    </div>
  );
}

function Question(waits: Waits) {
  const { waiting, answer } = waits;
  return (
    <>
      <p>{String(waiting.payload["question"] ?? "")}</p>
      <div class="row">
        {waiting.options.length > 0 && (
          <div class="answers" role="group" aria-label={texts.answers(waiting.options.length)}>
            {waiting.options.map((one) => (
              <button key={one} onClick={() => void answer(one)}>{one}</button>
            ))}
          </div>
        )}
        <InWords run={waits.run} waiting={waiting} name={texts.inWords} />
      </div>
    </>
  );
}
