import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { apiKey, read } from "../../api";
import { currentPurpose, sendDraft, typed } from "../../composing";
import { cancel, foremostRun, openId, openRuns, tick, trouble } from "../../conversation";
import { type Draft, begun, draftOf, keepDraft } from "../../drafts";
import { type Member, members } from "../../members";
import { type FormPurpose, type Purpose, answering, forTeam, keyOf, suggestedForm } from "../../purpose";
import type { RunModel } from "../../run";
import { labelled, texts } from "../../texts";
import { type UploadLimits, checkFiles, uploadLimits } from "../../uploads";
import { hasKeyboard } from "../focus";
import { Options, chosenOptions } from "./Options";
import { RunOptions } from "./RunOptions";
import { pasted, useDropped } from "./fileInput";
import { useHeldFocus } from "./heldFocus";

export function Composer() {
  const [draft, setDraft] = useDraft();
  const [isSending, setSending] = useState(0);
  const [isOpened, setOpened] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const { text, files } = draft;
  void tick.value;
  const runs = openRuns();
  const active = foremostRun();
  const purpose = currentPurpose(draft);
  const limits = useLimits();
  const add = (more: File[]) => {
    if (more.length === 0) return;
    const { accepted, refusals } = checkFiles(files, more, limits);
    trouble.value = refusals.join(" ");
    setDraft({ ...draft, files: [...files, ...accepted] });
  };
  const isOver = useDropped(add);
  const place = useRef<HTMLFormElement>(null);
  const isInUse = useHeldFocus(place);
  const isContinued = isContinuing(runs);
  const isFolded = useFolded(isContinued, isInUse) && !isOpened;
  useEffect(() => {
    read<{ team_members: Record<string, Member> }>("/api/team_members").then(
      (config) => (members.value = Object.values(config.team_members)),
      () => undefined,
    );
  }, [apiKey.value]);
  useGrowing(field, text);
  useReady(field);
  const ask = async () => {
    setSending((count) => count + 1);
    setOpened(false);
    await sendDraft(chosenOptions(), () => setDraft());
    setSending((count) => count - 1);
  };
  const onKey = (event: KeyboardEvent) => {
    // Enter also confirms a word of an input method, which must not send the question; in Safari only the key code 229 shows that.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    void ask();
  };
  const onPaste = (event: ClipboardEvent) => {
    const given = pasted(event);
    if (given.length > 0) event.preventDefault();
    add(given);
  };
  const submit = (event: Event) => (event.preventDefault(), void ask());
  return (
    <form ref={place} class={`composer ${isOver ? "over" : ""} ${isInUse || isOpened ? "" : "resting"} ${isFolded ? "folded" : ""}`} onSubmit={submit}>
      {files.length > 0 && <Chosen files={files} onDrop={(gone) => setDraft({ ...draft, files: files.filter((one) => one !== gone) })} />}
      <Target draft={draft} purpose={purpose} onChoice={(chosen) => setDraft({ ...draft, purpose: chosen })} />
      <textarea
        id="question"
        ref={field}
        rows={1}
        dir="auto"
        aria-label={texts.question}
        placeholder={placeholderOf(runs, purpose)}
        value={text}
        onInput={(e) => setDraft(typed(draft, e.currentTarget.value))}
        onKeyDown={onKey}
        onPaste={onPaste}
      />
      <div class="row">
        {/* The options of the next question keep their room while a run has its own: the field stays where it is. */}
        <div class="options">
          <div class="row" inert={isContinued}><Options /></div>
          {isContinued && active && <RunOptions run={active} />}
        </div>
        <button type="button" class="more" aria-label={texts.options} aria-expanded={!isFolded} onClick={() => setOpened(isFolded)}>⋯</button>
        <label class="chip file" title={texts.files}>
          <span aria-hidden="true">+</span> <span class="name">{texts.files}</span>
          <input type="file" multiple onChange={(e) => (add([...(e.currentTarget.files ?? [])]), (e.currentTarget.value = ""))} />
        </label>
        <span class="ends">
          {isSending > 0 && <span class="faint" role="status">{texts.sending}</span>}
          <button type="button" class={active ? "" : "absent-button"} onClick={() => active && void cancel(active)}>
            <span aria-hidden="true">■</span> <span class="name">{texts.cancelRun}</span>
          </button>
          <button class="main" disabled={!text.trim()}>{texts.send}</button>
        </span>
      </div>
    </form>
  );
}

/**
 * Whether the options are folded where the window is narrow: while the field is not in use, and from the beginning
 * of a run until the field is used again. They never unfold by themselves under the hands of who writes.
 */
function useFolded(isContinued: boolean, isInUse: boolean): boolean {
  const [isHeld, setHeld] = useState(false);
  useLayoutEffect(() => {
    if (isContinued) setHeld(true);
    else if (!isInUse) setHeld(false);
  }, [isContinued, isInUse]);
  return isHeld || !isInUse;
}

/** The service's limits for files; null until they are known. */
function useLimits(): UploadLimits | null {
  const [limits, setLimits] = useState<UploadLimits | null>(null);
  useEffect(() => void uploadLimits().then(setLimits, () => undefined), [apiKey.value]);
  return limits;
}

/** Whether a text belongs to a run that has begun, as an answer or a message: the options are those of that run. */
function isContinuing(runs: readonly RunModel[]): boolean {
  return runs.some((run) => run.isAtWork || run.status === "interrupted");
}

interface Targeted {
  draft: Draft;
  purpose: Purpose | null;
  onChoice: (purpose: Purpose) => void;
}

/** What the text is for, while something can be answered or a choice is due; with a button for the other purpose. */
function Target({ draft, purpose, onChoice }: Targeted) {
  const form = suggestedForm(openRuns());
  const isAnswer = purpose?.to === "form";
  const isGone = purpose === null && draft.purpose?.to === "form";
  // The form of a run that waits for nothing else is enough.
  const isPlain = !draft.text.trim() && !form?.run.isAtWork;
  if ((!form && purpose !== null) || isPlain) return null;
  const said = isGone ? texts.formGone((draft.purpose as FormPurpose).asked) : isAnswer ? answers(purpose) : purpose ? texts.writesToTeam : texts.choosePurpose;
  return (
    <p class="target" role={purpose === null ? "alert" : undefined}>
      {said}{" "}
      {(isAnswer || purpose === null) && <button type="button" onClick={() => onChoice(form ? { ...forTeam, insteadOf: keyOf(form.asked) } : forTeam)}>{texts.toTeam}</button>}{" "}
      {!isAnswer && form && <button type="button" onClick={() => onChoice(answering(form))}>{texts.toAnswer}</button>}
    </p>
  );
}

function answers({ kind, asked }: FormPurpose): string {
  return kind === "tool_approval" ? texts.decidesCall(asked) : texts.answersQuestion(asked);
}

/** The kind of the next text: an answer, a message to the running team, or a question. */
function placeholderOf(runs: readonly RunModel[], purpose: Purpose | null): string {
  if (purpose?.to === "form") return purpose.kind === "tool_approval" ? texts.approvalPlaceholder : texts.answerPlaceholder;
  return isContinuing(runs) ? texts.steerPlaceholder : texts.placeholder;
}

/** Give the focus to the field of a new conversation, and to that of a draft that was begun for it. */
function useReady(field: RefObject<HTMLTextAreaElement | null>): void {
  const isNew = openId.value === null;
  // Before paint: whoever deletes the open conversation gives the focus to the list afterwards.
  useLayoutEffect(() => {
    if (isNew && hasKeyboard()) field.current?.focus({ preventScroll: true });
  }, [isNew]);
  // Before paint: what is typed right after the click is written there.
  useLayoutEffect(() => {
    const { current } = field;
    if (!begun.value || !current) return;
    current.focus();
    current.setSelectionRange(current.value.length, current.value.length);
  }, [begun.value]);
}

/** The draft of the open conversation; each has its own. Its setter renders it again, without an argument as it is stored. */
function useDraft() {
  void begun.value;
  const thread = openId.value;
  const [, setVersion] = useState(0);
  const change = (to?: Draft) => {
    if (to) keepDraft(openId.value, to);
    setVersion((version) => version + 1);
  };
  return [draftOf(thread), change] as const;
}

/** Fit the height of the field to its text in browsers without `field-sizing`. */
function useGrowing(field: RefObject<HTMLTextAreaElement | null>, text: string): void {
  useLayoutEffect(() => {
    if (CSS.supports("field-sizing", "content")) return;
    const fit = () => grow(field.current);
    fit();
    addEventListener("resize", fit);
    return () => removeEventListener("resize", fit);
  }, [text]);
}

function grow(field: HTMLTextAreaElement | null): void {
  if (!field) return;
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight, innerHeight / 3)}px`;
}

function Chosen({ files, onDrop }: { files: readonly File[]; onDrop: (file: File) => void }) {
  return (
    <ul class="chosen">
      {files.map((file, at) => (
        <li key={at}>
          {file.name}{" "}
          <button type="button" aria-label={labelled(texts.drop, file.name)} onClick={() => onDrop(file)}>×</button>
        </li>
      ))}
    </ul>
  );
}
