import { useState } from "preact/hooks";
import type { Interrupt } from "../../events";
import { titleOf } from "../../purpose";
import type { RunModel } from "../../run";
import { approval, rejection, result } from "../../decisions";
import { texts } from "../../texts";
import { useOnce } from "../ActionButton";
import { type Acts, useService } from "../service";
import { PlanEditor, type PlannedSteps, reviewedPlan } from "./PlanEditor";

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
  const give: Waits["answer"] = async (reply) => {
    let isTaken = false;
    await once(async () => (isTaken = await answer(run, waiting, reply)));
    return isTaken;
  };
  return (
    <fieldset disabled={isUnderWay}>
      <Form run={run} waiting={waiting} answer={give} />
    </fieldset>
  );
}

function Form(waits: Waits) {
  if (waits.waiting.kind === "plan_review") return <Review {...waits} />;
  return waits.waiting.kind === "question" ? <Question {...waits} /> : <Approval {...waits} />;
}

function Asked({ waiting: { kind, payload } }: { waiting: Interrupt }) {
  if (kind === "question") return <p>{String(payload["question"] ?? "")}</p>;
  if (kind === "plan_review") return null;
  return (
    <>
      <p><code>{String(payload["tool_name"] ?? "")}</code></p>
      <pre tabIndex={0} aria-label={texts.argumentsOf}>{JSON.stringify(payload["tool_input"] ?? {}, null, 2)}</pre>
    </>
  );
}

/** The editable steps, without a report that repeats a result, which the service adds again. */
function editable({ run, waiting }: Waits): PlannedSteps {
  const plan: PlannedSteps = reviewedPlan(waiting) ?? run.plan ?? { title: "", steps: [] };
  return { title: plan.title, steps: plan.steps.filter((step) => !step.repeats) };
}

function Review(waits: Waits) {
  const { answer } = waits;
  const [isEdited, setEdited] = useState(false);
  return (
    <>
      {isEdited ? (
        <PlanEditor plan={editable(waits)} onPlan={(plan) => void answer(plan)} />
      ) : (
        <div class="row">
          <button class="main" onClick={() => void answer("accept")}>{texts.accept}</button>
          <button onClick={() => setEdited(true)}>{texts.editPlan}</button>
        </div>
      )}
      <Words label={texts.feedback} act={texts.ask} onWords={(text) => answer(text)} />
    </>
  );
}

function Approval({ waiting, answer }: Waits) {
  const given = JSON.stringify(waiting.payload["tool_input"] ?? {}, null, 2);
  const [text, setText] = useState(given);
  const [isBad, setBad] = useState(false);
  const isUnknown = waiting.payload["reason"] === "unknown_result";
  const approve = () => {
    if (text === given) return void answer(approval);
    const args = objectOf(text);
    setBad(args === null);
    if (args) void answer({ type: "edit", args });
  };
  return (
    <>
      <p><code>{String(waiting.payload["tool_name"] ?? "")}</code></p>
      <label>
        {texts.argumentsOf}
        <textarea rows={6} spellcheck={false} readOnly={isUnknown} aria-invalid={isBad} value={text} onInput={(e) => setText(e.currentTarget.value)} />
      </label>
      {isBad && <p class="notice bad" role="alert">{texts.badJson}</p>}
      <div class="row">
        {isUnknown ? (
          <>
            <button class="main" onClick={() => void answer("run again")}>{texts.runAgain}</button>
            <button onClick={() => void answer("skip")}>{texts.skip}</button>
          </>
        ) : (
          <button class="main" onClick={approve}>{text === given ? texts.approve : texts.edit}</button>
        )}
      </div>
      {isUnknown && <Words label={texts.knownResult} act={texts.reply} onWords={(text) => answer(result(text))} />}
      {!isUnknown && <Words label={texts.whyNot} act={texts.reject} isOptional onWords={(why) => answer(rejection(why))} />}
    </>
  );
}

/** The JSON object in a text; null for anything else. */
function objectOf(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

function Question({ waiting, answer }: Waits) {
  return (
    <>
      <p>{String(waiting.payload["question"] ?? "")}</p>
      <div class="row">
        {waiting.options.map((one) => (
          <button key={one} onClick={() => void answer(one)}>{one}</button>
        ))}
      </div>
      <Words label={texts.answer} act={texts.reply} onWords={(text) => answer(text)} />
    </>
  );
}

interface Asks {
  label: string;
  act: string;
  isOptional?: boolean;
  onWords: (text: string) => unknown;
}

function Words({ label, act, isOptional = false, onWords }: Asks) {
  const [text, setText] = useState("");
  const give = (event: Event) => {
    event.preventDefault();
    if (isOptional || text.trim()) onWords(text.trim());
  };
  return (
    <form class="words" onSubmit={give}>
      <label>
        {label}
        <input value={text} onInput={(e) => setText(e.currentTarget.value)} />
      </label>
      <button disabled={!isOptional && !text.trim()}>{act}</button>
    </form>
  );
}
