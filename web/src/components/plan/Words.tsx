import { useState } from "preact/hooks";

interface Asks {
  label: string;
  act: string;
  isOptional?: boolean;
  onWords: (text: string) => unknown;
}

/** A field for an answer in words, with its button. */
export function Words({ label, act, isOptional = false, onWords }: Asks) {
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
