import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { apiKey, read } from "../../api";
import { answer, cancel, here, openId, openRuns, say, tick } from "../../conversation";
import { type Draft, draftOf, keepDraft } from "../../drafts";
import { type Member, members } from "../../members";
import type { StepQuestion } from "../../events";
import type { RunModel } from "../../run";
import { texts } from "../../texts";
import { titleOf } from "../plan/InterruptForm";
import { Options, chosenOptions } from "./Options";
import { pasted, useDropped } from "./fileInput";

export function Composer() {
  const [draft, setDraft] = useDraft();
  const [isSending, setSending] = useState(0);
  const field = useRef<HTMLTextAreaElement>(null);
  const { text, files } = draft;
  void tick.value;
  const runs = openRuns();
  const active = runs.find((run) => run.isAtWork || run.status === "interrupted");
  const asking = askingOf(runs);
  const [isForTeam, setForTeam] = useTarget(asking?.question, text);
  const add = (more: File[]) => more.length > 0 && setDraft({ text, files: [...files, ...more] });
  const isOver = useDropped(add);
  useEffect(() => {
    read<{ team_members: Record<string, Member> }>("/api/team_members").then(
      (config) => (members.value = Object.values(config.team_members)),
      () => undefined,
    );
  }, [apiKey.value]);
  useGrowing(field, text);
  const ask = async () => {
    if (!text.trim()) return;
    if (asking && !isForTeam) {
      setDraft({ text: "", files });
      const isTaken = await answer(asking.run, asking.question, text.trim());
      if (!isTaken) setDraft((now) => ({ ...now, text: now.text || text }));
      return;
    }
    setForTeam(false);
    setDraft({ text: "", files: [] });
    setSending((count) => count + 1);
    const asked = here();
    const isTaken = await say(text.trim(), chosenOptions(), files);
    setSending((count) => count - 1);
    // Text that was typed in the meantime is kept when a question is refused.
    if (!isTaken) setDraft((now) => ({ text: now.text ? `${text}\n${now.text}` : text, files: [...files, ...now.files] }), asked.id ?? asked.from);
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
    <form class={`composer ${isOver ? "over" : ""}`} onSubmit={submit}>
      {files.length > 0 && <Chosen files={files} onDrop={(gone) => setDraft({ text, files: files.filter((one) => one !== gone) })} />}
      {asking && (
        <p class="target">
          {isForTeam ? texts.writesToTeam : texts.answersQuestion(textOf(asking.question))}{" "}
          <button type="button" onClick={() => setForTeam(!isForTeam)}>{isForTeam ? texts.toAnswer : texts.toTeam}</button>
        </p>
      )}
      <textarea
        id="question"
        ref={field}
        rows={1}
        dir="auto"
        aria-label={texts.question}
        placeholder={asking && !isForTeam ? texts.answerPlaceholder : placeholderOf(runs)}
        value={text}
        onInput={(e) => setDraft({ text: e.currentTarget.value, files })}
        onKeyDown={onKey}
        onPaste={onPaste}
      />
      <div class="row">
        {!isContinuing(runs) && <Options />}
        <label class="chip file" title={texts.files}>
          <span aria-hidden="true">+</span> <span class="name">{texts.files}</span>
          <input type="file" multiple onChange={(e) => (add([...(e.currentTarget.files ?? [])]), (e.currentTarget.value = ""))} />
        </label>
        <span class="ends">
          {isSending > 0 && <span class="faint" role="status">{texts.sending}</span>}
          {active && (
            <button type="button" onClick={() => void cancel(active)}>
              <span aria-hidden="true">■</span> <span class="name">{texts.stop}</span>
            </button>
          )}
          <button class="main" disabled={!text.trim()}>{texts.send}</button>
        </span>
      </div>
    </form>
  );
}

/** Whether a text belongs to a run that has begun, as an answer or a message: the options are those of that run. */
function isContinuing(runs: readonly RunModel[]): boolean {
  return runs.at(-1)?.status === "interrupted" || runs.some((run) => run.isAtWork);
}

/** The oldest question that a step asks while others go on. */
function askingOf(runs: readonly RunModel[]): { run: RunModel; question: StepQuestion } | undefined {
  const run = runs.find((one) => one.isAtWork && one.questions.length > 0);
  return run && { run, question: run.questions[0]! };
}

/** As much of a question as is repeated above the text, in characters. */
const SHOWN = 200;

function textOf(question: StepQuestion): string {
  const { kind, payload } = question;
  const text = kind === "question" ? String(payload["question"] ?? "") : `${titleOf(question)} (${String(payload["tool_name"] ?? "")})`;
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}

/** Whether a text is for the team while a step asks: chosen, or begun before the question was there. */
function useTarget(question: StepQuestion | undefined, text: string) {
  const [forTeam, setForTeam] = useState<StepQuestion | null>(null);
  const seen = useRef(question);
  if (seen.current !== question) {
    const wasForTeam = seen.current === undefined || forTeam === seen.current;
    seen.current = question;
    if (question && wasForTeam && text.trim()) setForTeam(question);
  }
  const isForTeam = question !== undefined && forTeam === question;
  return [isForTeam, (to: boolean) => setForTeam(to && question ? question : null)] as const;
}

/** The kind of the next text: an answer, a message to the running team, or a question. */
function placeholderOf(runs: readonly RunModel[]): string {
  if (runs.at(-1)?.status === "interrupted") return texts.answerPlaceholder;
  return runs.some((run) => run.isAtWork) ? texts.steerPlaceholder : texts.placeholder;
}

/** The draft of the question; each conversation has its own. */
function useDraft() {
  const thread = openId.value;
  const [, setVersion] = useState(0);
  const change = (to: Draft | ((now: Draft) => Draft), now = openId.value) => {
    keepDraft(now, typeof to === "function" ? to(draftOf(now)) : to);
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
          <button type="button" aria-label={`${texts.drop}: ${file.name}`} onClick={() => onDrop(file)}>×</button>
        </li>
      ))}
    </ul>
  );
}
