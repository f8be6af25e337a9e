import { useEffect, useRef, useState } from "preact/hooks";
import { Refusal } from "../../api";
import { type Connection, type Models, type Saved, type Tested, connectModel, isConnecting, models, refreshModels, testModel } from "../../models";
import { listed, texts } from "../../texts";
import { ActionButton, useOnce } from "../ActionButton";

type Outcome = { failed: string } | { tested: Tested } | { saved: Saved };

/** The form for another model, over the page while it is open. */
export function ConnectDialog() {
  return isConnecting.value && models.value ? <Dialog {...models.value} /> : null;
}

function Dialog({ fixed, trusts }: Pick<Models, "fixed" | "trusts">) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  // What was in the way may be gone, such as a folder that has been trusted since.
  useEffect(() => void lookAgain(), []);
  return (
    <dialog class="connect" ref={dialog} aria-labelledby="connect-title" onClose={() => (isConnecting.value = false)}>
      <h2 id="connect-title">{texts.connectModel}</h2>
      {fixed ? <Fixed reason={fixed} /> : <Form trusts={trusts} />}
      <div class="row ends">
        <button type="button" onClick={() => dialog.current?.close()}>{texts.close}</button>
      </div>
    </dialog>
  );
}

function lookAgain(): Promise<void> {
  return refreshModels().catch(() => undefined);
}

/** Why no model can be connected here, in the service's own words, with a button for when that is mended. */
function Fixed({ reason }: { reason: string }) {
  return (
    <>
      <p lang="en">{reason}</p>
      <ActionButton act={lookAgain}>{texts.tryAgain}</ActionButton>
    </>
  );
}

function Form({ trusts }: Pick<Models, "trusts">) {
  const form = useRef<HTMLFormElement>(null);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [isUnderWay, once] = useOnce();
  const act = (work: (asked: Connection) => Promise<Outcome>) => {
    if (!form.current?.reportValidity()) return;
    setOutcome(null);
    void once(async () => setOutcome(await work(connectionOf(form.current!)).catch(failed)));
  };
  const test = () => act(async (asked) => ({ tested: await testModel(asked) }));
  const save = () => act(async (asked) => ({ saved: await connectModel(asked) }));
  const listed = outcome && "tested" in outcome ? outcome.tested.models : [];
  return (
    <form ref={form} onSubmit={(event) => (event.preventDefault(), save())}>
      <p>{texts.connectHint}</p>
      {trusts && <p>{texts.trustsFolder(trusts)}</p>}
      <label>
        {texts.endpoint}
        <input name="base_url" type="url" placeholder="https://api.openai.com/v1" autocomplete="off" spellcheck={false} />
      </label>
      <label>
        {texts.key}
        <input name="api_key" type="password" autocomplete="off" />
      </label>
      <label>
        {texts.modelName}
        <input name="model" required list="listed-models" placeholder="gpt-4o" autocomplete="off" spellcheck={false} />
        <datalist id="listed-models">{listed.map((name) => <option key={name} value={name} />)}</datalist>
      </label>
      <div class="row">
        <button type="button" disabled={isUnderWay} onClick={test}>{texts.testModel}</button>
        <button class="main" disabled={isUnderWay}>{texts.save}</button>
        {isUnderWay && <span class="faint">{texts.testing}</span>}
      </div>
      <div role="status">{outcome && <Shown outcome={outcome} />}</div>
    </form>
  );
}

function connectionOf(form: HTMLFormElement): Connection {
  const of = (name: string) => String(new FormData(form).get(name) ?? "").trim();
  const key = of("api_key");
  return { model: of("model"), base_url: of("base_url"), ...(key ? { api_key: key } : {}) };
}

function failed(error: unknown): Outcome {
  return { failed: error instanceof Refusal ? error.message : texts.unreachable };
}

function Shown({ outcome }: { outcome: Outcome }) {
  if ("failed" in outcome) return <p class="notice bad">{outcome.failed}</p>;
  if ("saved" in outcome) {
    const { model, file, overruled, notices } = outcome.saved;
    return (
      <div class="notice">
        <p>{texts.modelSaved(model, file)}</p>
        {overruled.length > 0 && <p>{texts.overruled(listed(overruled))}</p>}
        {notices.map((one) => <p key={one}>{one}</p>)}
      </div>
    );
  }
  const { works, detail, features } = outcome.tested;
  if (!works) return <p class="notice bad">{detail}</p>;
  return (
    <div class="notice">
      <p>{texts.modelWorks}</p>
      <ul>
        {Object.entries(features).map(([name, has]) => (
          <li key={name}>{texts.hasFeature(texts.features[name] ?? name, has)}</li>
        ))}
      </ul>
    </div>
  );
}
