import { useState } from "preact/hooks";
import { keyWanted } from "../api";
import { isOffline, openId, trouble } from "../conversation";
import { words } from "../words";
import { Composer } from "./chat/Composer";
import { Conversation } from "./chat/Conversation";
import { KeyForm } from "./KeyForm";
import { ThreadList } from "./threads/ThreadList";

export function App({ onKey }: { onKey: () => void }) {
  const [isListOpen, setListOpen] = useState(false);
  if (keyWanted.value !== null) return <KeyForm why={keyWanted.value} onKey={onKey} />;
  return (
    <div class={`frame ${isListOpen ? "listing" : ""}`} onKeyDown={(e) => e.key === "Escape" && setListOpen(false)}>
      <ThreadList onChoice={() => setListOpen(false)} />
      <main>
        <header class="bar">
          <button class="menu" aria-expanded={isListOpen} onClick={() => setListOpen(!isListOpen)}>
            <span aria-hidden="true">☰</span> <span class="unseen">{words.menu}</span>
          </button>
          <span class="brand">maniple</span>
        </header>
        <Conversation key={openId.value ?? ""} />
        <div class="foot">
          {isOffline.value && <p class="notice" role="status">{words.offline}</p>}
          {trouble.value && <p class="notice bad" role="alert">{trouble.value}</p>}
          <Composer />
        </div>
      </main>
    </div>
  );
}
