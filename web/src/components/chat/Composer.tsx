import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { apiKey, read } from "../../api";
import { cancel, here, openId, openRuns, say, tick } from "../../conversation";
import { type Draft, draftOf, keepDraft } from "../../drafts";
import { type Member, members } from "../../members";
import { words } from "../../words";
import { Options, usualWishes } from "./Options";
import { pasted, useDropped } from "./giving";

export function Composer() {
  const [draft, setDraft] = useDraft();
  const [isSending, setSending] = useState(0);
  const field = useRef<HTMLTextAreaElement>(null);
  const { text, files } = draft;
  void tick.value;
  const runs = openRuns();
  const active = runs.find((run) => run.isAtWork || run.status === "interrupted");
  const add = (more: File[]) => more.length > 0 && setDraft({ text, files: [...files, ...more] });
  const isOver = useDropped(add);
  useEffect(() => {
    read<{ team_members: Record<string, Member> }>("/api/team_members").then(
      (told) => (members.value = Object.values(told.team_members)),
      () => undefined,
    );
  }, [apiKey.value]);
  useGrowing(field, text);
  const ask = async () => {
    if (!text.trim()) return;
    setDraft({ text: "", files: [] });
    setSending((count) => count + 1);
    const asked = here();
    const isTaken = await say(text.trim(), usualWishes(), files);
    setSending((count) => count - 1);
    // What was typed meanwhile is not lost for what was refused.
    if (!isTaken) setDraft((now) => ({ text: now.text ? `${text}\n${now.text}` : text, files: [...files, ...now.files] }), asked.id ?? asked.from);
  };
  const onKey = (event: KeyboardEvent) => {
    // Enter also ends a word of an input method, which is no end of the question; of Safari's only its code (229) tells.
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
      <textarea
        id="question"
        ref={field}
        rows={1}
        dir="auto"
        aria-label={words.question}
        placeholder={runs.at(-1)?.status === "interrupted" ? words.answerPlaceholder : words.placeholder}
        value={text}
        onInput={(e) => setDraft({ text: e.currentTarget.value, files })}
        onKeyDown={onKey}
        onPaste={onPaste}
      />
      <div class="row">
        <Options />
        <label class="chip file" title={words.files}>
          <span aria-hidden="true">+</span> <span class="name">{words.files}</span>
          <input type="file" multiple onChange={(e) => (add([...(e.currentTarget.files ?? [])]), (e.currentTarget.value = ""))} />
        </label>
        <span class="ends">
          {isSending > 0 && <span class="faint" role="status">{words.sending}</span>}
          {active && (
            <button type="button" onClick={() => void cancel(active)}>
              <span aria-hidden="true">■</span> <span class="name">{words.stop}</span>
            </button>
          )}
          <button class="main" disabled={!text.trim()}>{words.send}</button>
        </span>
      </div>
    </form>
  );
}

/** What was begun to be asked here; each conversation keeps its own. */
function useDraft() {
  const thread = openId.value;
  const [, setVersion] = useState(0);
  const change = (to: Draft | ((now: Draft) => Draft), now = openId.value) => {
    keepDraft(now, typeof to === "function" ? to(draftOf(now)) : to);
    setVersion((version) => version + 1);
  };
  return [draftOf(thread), change] as const;
}

/** Make the field as high as its text where the browser does not do so by itself. */
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
          <button type="button" aria-label={`${words.drop}: ${file.name}`} onClick={() => onDrop(file)}>×</button>
        </li>
      ))}
    </ul>
  );
}
