import { useState } from "preact/hooks";
import { useKey } from "../api";
import { texts } from "../texts";

export function KeyForm({ why, onKey }: { why: string; onKey: () => void }) {
  const [key, setKey] = useState("");
  const enter = (event: Event) => {
    event.preventDefault();
    useKey(key.trim());
    onKey();
  };
  return (
    <main class="door">
      <form onSubmit={enter}>
        <h1>{texts.keyTitle}</h1>
        <p>{why}</p>
        <label>
          {texts.key}
          <input type="password" autocomplete="off" required value={key} onInput={(e) => setKey(e.currentTarget.value)} />
        </label>
        <button class="main">{texts.enter}</button>
      </form>
    </main>
  );
}
