import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { REJECTION, RESULT_OF_CALL, allowance, approval, objectIn, rejection } from "../../decisions";
import type { Interrupt } from "../../events";
import type { RunModel } from "../../run";
import { dropFormDraft, hasFormDraft, useFormDraft } from "../../formDrafts";
import { askedCall, callName, formName } from "../../purpose";
import { listed, texts } from "../../texts";
import { Boundary } from "../Boundary";
import { ProposedCall } from "../work/CallBody";
import { InWords } from "./InWords";

interface Waits {
  run: RunModel;
  waiting: Interrupt;
  answer: (reply: unknown) => Promise<boolean>;
}

/** The call that a person decides on, in words and as it would run. */
export function AskedCall({ waiting }: { waiting: Interrupt }) {
  const { tool, input } = askedCall(waiting);
  const times = waiting.payload["next_times"];
  return (
    <>
      <p title={tool}>{callName(tool)}</p>
      {Array.isArray(times) && times.length > 0 && <p>{texts.nextTimes(listed(times.map(String)))}</p>}
      <div class="action">
        <Boundary><ProposedCall tool={tool} input={input} /></Boundary>
      </div>
    </>
  );
}

/** Allows a call, once or for the rest of the run, changes it, or rejects it; or says what became of one. */
export function Approval({ run, waiting, answer }: Waits) {
  const given = JSON.stringify(waiting.payload["tool_input"] ?? {}, null, 2);
  const form = formName({ run, waiting });
  const [wasEdited] = useState(hasFormDraft(form));
  const [isEdited, setEdited] = useState(wasEdited);
  const edit = async (args: Record<string, unknown>) => void ((await answer({ type: "edit", args })) && dropFormDraft(form));
  const canAllow = Object.hasOwn(waiting.payload["answers"] ?? { always: "" }, "always");
  if (waiting.payload["reason"] === "unknown_result") return <Unknown run={run} waiting={waiting} answer={answer} />;
  return (
    <>
      {isEdited ? <EditedCall form={form} takesFocus={!wasEdited} given={given} onArgs={(args) => void edit(args)} /> : <AskedCall waiting={waiting} />}
      <div class="row">
        {!isEdited && (
          <>
            <button class="main" onClick={() => void answer(approval)}>{texts.approve}</button>
            {canAllow && <button title={texts.allowHint} onClick={() => void answer(allowance)}>{texts.allow}</button>}
            <button onClick={() => setEdited(true)}>{texts.editCall}</button>
          </>
        )}
        <button onClick={() => void answer(rejection(""))}>{texts.reject}</button>
        <InWords run={run} waiting={waiting} name={texts.rejectInWords} begin={REJECTION} />
      </div>
    </>
  );
}

function Unknown({ run, waiting, answer }: Waits) {
  return (
    <>
      <AskedCall waiting={waiting} />
      <div class="row">
        <button class="main" onClick={() => void answer("run again")}>{texts.runAgain}</button>
        <button onClick={() => void answer("skip")}>{texts.skip}</button>
        <InWords run={run} waiting={waiting} name={texts.knownResult} begin={RESULT_OF_CALL} />
      </div>
    </>
  );
}

function EditedCall({ form, takesFocus, given, onArgs }: { form: string; takesFocus: boolean; given: string; onArgs: (args: Record<string, unknown>) => void }) {
  const [text, setText] = useFormDraft(form, () => given);
  const [isBad, setBad] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    if (takesFocus) field.current?.focus();
  }, []);
  const approve = () => {
    const args = objectIn(text);
    setBad(args === null);
    if (args) onArgs(args);
  };
  return (
    <>
      <label>
        {texts.argumentsOf}
        <textarea ref={field} rows={6} spellcheck={false} aria-invalid={isBad} value={text} onInput={(e) => setText(e.currentTarget.value)} />
      </label>
      {isBad && <p class="notice bad" role="alert">{texts.badJson}</p>}
      <div class="row">
        <button class="main" onClick={approve}>{texts.edit}</button>
      </div>
    </>
  );
}
