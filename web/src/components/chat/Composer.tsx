import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { apiKey, read } from "../../api";
import { type Wishes, cancel, openRuns, say, tick } from "../../conversation";
import { type Member, members } from "../../members";
import { words } from "../../words";

const isDeep = signal(false);
const searchesFirst = signal(false);
const reviews = signal(false);
const leftOut = signal<ReadonlySet<string>>(new Set());

/** What the person has chosen for the next question. */
export function usualWishes(): Wishes {
  const chosen = members.value.map((one) => one.name).filter((name) => !leftOut.value.has(name));
  return {
    deep_thinking_mode: isDeep.value,
    search_before_planning: searchesFirst.value,
    auto_accepted_plan: !reviews.value,
    team_members: leftOut.value.size > 0 ? chosen : null,
  };
}

export function Composer() {
  const [text, setText] = useState("");
  const [files, setFiles] = useState<File[]>([]);
  const field = useRef<HTMLTextAreaElement>(null);
  void tick.value;
  const newest = openRuns().at(-1);
  const active = newest && (newest.isAtWork || newest.status === "interrupted") ? newest : undefined;
  useEffect(() => {
    read<{ team_members: Record<string, Member> }>("/api/team_members").then(
      (told) => (members.value = Object.values(told.team_members)),
      () => undefined,
    );
  }, [apiKey.value]);
  useEffect(() => grow(field.current), [text]);
  const ask = async () => {
    const question = text.trim();
    if (!question) return;
    setText("");
    if (await say(question, usualWishes(), files)) setFiles([]);
    else setText(question);
  };
  const onKey = (event: KeyboardEvent) => {
    // Enter also ends a word of an input method, which is no end of the question.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    void ask();
  };
  const submit = (event: Event) => (event.preventDefault(), void ask());
  return (
    <form class="composer" onSubmit={submit}>
      {files.length > 0 && <Chosen files={files} onDrop={(gone) => setFiles(files.filter((one) => one !== gone))} />}
      <textarea
        ref={field}
        rows={1}
        aria-label={words.question}
        placeholder={newest?.status === "interrupted" ? words.answerPlaceholder : words.placeholder}
        value={text}
        onInput={(e) => setText(e.currentTarget.value)}
        onKeyDown={onKey}
      />
      <div class="row">
        <Options />
        <label class="chip file">
          <span aria-hidden="true">+</span> {words.files}
          <input type="file" multiple onChange={(e) => (setFiles([...files, ...(e.currentTarget.files ?? [])]), (e.currentTarget.value = ""))} />
        </label>
        <span class="ends">
          {active && <button type="button" onClick={() => void cancel(active)}>{words.stop}</button>}
          <button class="main" disabled={!text.trim()}>{words.send}</button>
        </span>
      </div>
    </form>
  );
}

function grow(field: HTMLTextAreaElement | null): void {
  if (!field) return;
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight, innerHeight / 3)}px`;
}

function Chosen({ files, onDrop }: { files: File[]; onDrop: (file: File) => void }) {
  return (
    <ul class="chosen">
      {files.map((file) => (
        <li key={file.name}>
          {file.name}{" "}
          <button type="button" aria-label={`${words.drop}: ${file.name}`} onClick={() => onDrop(file)}>×</button>
        </li>
      ))}
    </ul>
  );
}

function Options() {
  const toggles = [
    { choice: isDeep, name: words.deep },
    { choice: searchesFirst, name: words.searchFirst },
    { choice: reviews, name: words.review },
  ];
  return (
    <>
      {toggles.map(({ choice, name }) => (
        <button key={name} type="button" class="chip" aria-pressed={choice.value} onClick={() => (choice.value = !choice.value)}>
          {name}
        </button>
      ))}
      <details class="team">
        <summary class="chip">{words.team}</summary>
        <fieldset>
          <legend class="unseen">{words.team}</legend>
          {members.value.map((one) => (
            <label key={one.name} title={one.desc}>
              <input type="checkbox" checked={!leftOut.value.has(one.name)} disabled={!one.is_optional} onChange={() => choose(one.name)} />
              {one.name}
            </label>
          ))}
        </fieldset>
      </details>
    </>
  );
}

function choose(name: string): void {
  const left = new Set(leftOut.value);
  if (!left.delete(name)) left.add(name);
  leftOut.value = left;
}
