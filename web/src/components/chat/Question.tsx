import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Branch, besides, branchPoints } from "../../branches";
import { dropFormDraft, hasFormDraft, useFormDraft } from "../../formDrafts";
import { unfolded } from "../../passage";
import type { RunModel } from "../../run";
import { texts } from "../../texts";
import { useOnce } from "../ActionButton";
import { useService } from "../service";
import { Copy } from "../work/Copy";
import { announceUnfolding } from "./autoscroll";

/** A longer question, in characters or lines, is folded. */
const LONG = 1_500;
const LONG_LINES = 20;

export function Question({ text, isUnfolded = false }: { text: string; isUnfolded?: boolean }) {
  const [isWhole, setWhole] = useState(false);
  const start = text.split("\n", LONG_LINES).join("\n").slice(0, LONG);
  if (isWhole || isUnfolded || start.length === text.length) return <div class="question">{text}</div>;
  return (
    <div class="question">
      {start}… <button aria-expanded={false} onClick={(event) => (announceUnfolding(event.currentTarget), setWhole(true))}>{texts.showAll}</button>
    </div>
  );
}

/** The question of a run, which can be copied, and edited and sent again on a branch. */
export function RunQuestion({ run }: { run: RunModel; version: number }) {
  const form = `question ${run.runId}`;
  const [isEditing, setEditing] = useState(hasFormDraft(form));
  const { acts } = useService();
  const edit = useRef<HTMLButtonElement>(null);
  const close = () => {
    dropFormDraft(form);
    setEditing(false);
    edit.current?.focus();
  };
  if (acts && isEditing) return <Editing form={form} text={run.question} onEnd={close} onSend={(text) => acts.branch(run, text)} />;
  return (
    <>
      <Question text={run.question} isUnfolded={unfolded.value === run.runId} />
      <div class="question-acts">
        {acts && <Beside runId={run.runId} />}
        <Copy text={run.question} name={texts.copyQuestion} />
        {acts && run.isOver && (
          <button ref={edit} onClick={() => setEditing(true)}>{texts.editQuestion}</button>
        )}
      </div>
      {acts && <Note runId={run.runId} />}
    </>
  );
}

/** Which of the ways to ask the question is shown, and links to those beside it. */
function Beside({ runId }: { runId: string }) {
  const point = branchPoints.value.get(runId);
  if (!point) return null;
  const { at, count, previous, next } = besides(point);
  return (
    <nav class="beside" aria-label={texts.versions}>
      <Arrow to={previous} name={texts.previousVersion} sign="‹" />
      <span>{at} / {count}</span>
      <Arrow to={next} name={texts.nextVersion} sign="›" />
    </nav>
  );
}

function Arrow({ to, name, sign }: { to: Branch | undefined; name: string; sign: string }) {
  if (!to) return <span class="faint" aria-hidden="true">{sign}</span>;
  return <a href={`#${encodeURIComponent(to.thread_id)}`} aria-label={name} title={name}>{sign}</a>;
}

/** What of the files of a branch is not as it was at its question. */
function Note({ runId }: { runId: string }) {
  const note = branchPoints.value.get(runId)?.note;
  return note ? <p class="notice" role="note">{note}</p> : null;
}

interface Edited {
  /** The name under which the unsent text is stored. */
  form: string;
  text: string;
  onEnd: () => void;
  /** Returns whether the text was accepted. */
  onSend: (text: string) => Promise<boolean>;
}

function Editing({ form, text: before, onEnd, onSend }: Edited) {
  const [text, setText] = useFormDraft(form, () => before);
  const [isSending, once] = useOnce();
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => field.current?.focus(), []);
  const send = () => once(async () => void ((await onSend(text.trim())) && onEnd()));
  const submit = (event: Event) => (event.preventDefault(), void send());
  return (
    <form class="editing" onSubmit={submit} onKeyDown={(event) => event.key === "Escape" && onEnd()}>
      <textarea ref={field} dir="auto" rows={3} aria-label={texts.editQuestion} value={text} onInput={(e) => setText(e.currentTarget.value)} />
      <p class="faint">{texts.editHint}</p>
      <div class="row">
        <button type="button" onClick={onEnd}>{texts.editCancel}</button>
        <button class="main" disabled={isSending || !text.trim()}>{texts.editSend}</button>
      </div>
    </form>
  );
}
