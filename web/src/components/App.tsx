import { useEffect, useRef, useState } from "preact/hooks";
import { apiKey, keyWanted, useKey } from "../api";
import { openId } from "../conversation";
import { refreshModels } from "../models";
import { isOffline } from "../subscriptions";
import { texts } from "../texts";
import { Announcer } from "./Announcer";
import { Trouble } from "./Trouble";
import { Composer } from "./chat/Composer";
import { Conversation } from "./chat/Conversation";
import { KeyForm } from "./KeyForm";
import { ConnectDialog } from "./models/ConnectForm";
import { PendingForms } from "./plan/PendingForms";
import { LivePanel } from "./panel/LivePanel";
import { ThreadList } from "./threads/ThreadList";

export function App({ onKey }: { onKey: () => void }) {
  const [isListOpen, setListOpen] = useState(false);
  const menu = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (isListOpen) document.querySelector<HTMLElement>(".threads a")?.focus();
  }, [isListOpen]);
  useEffect(() => void refreshModels().catch(() => undefined), [apiKey.value]);
  if (keyWanted.value !== null) return <KeyForm why={keyWanted.value} onKey={onKey} />;
  const logOut = () => {
    useKey("");
    onKey();
  };
  const close = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !isListOpen) return;
    setListOpen(false);
    menu.current?.focus();
  };
  return (
    <div class={`frame ${isListOpen ? "listing" : ""}`} onKeyDown={close}>
      <button class="skip" onClick={() => document.getElementById("question")?.focus()}>{texts.toQuestion}</button>
      <ThreadList onChoice={() => setListOpen(false)} onLogOut={logOut} />
      {isListOpen && <div class="veil" onClick={() => setListOpen(false)} />}
      <main>
        <header class="bar">
          <button class="menu" ref={menu} aria-expanded={isListOpen} onClick={() => setListOpen(!isListOpen)}>
            <span aria-hidden="true">☰</span> <span class="unseen">{texts.menu}</span>
          </button>
          <span class="brand"><img class="logo" src="./icon.svg" alt="" />maniple</span>
        </header>
        <Conversation key={openId.value ?? ""} />
        <LivePanel />
        <div class="foot">
          <Announcer />
          {isOffline.value && <p class="notice" role="status">{texts.offline}</p>}
          <Trouble />
          <PendingForms />
          <Composer />
        </div>
      </main>
      <ConnectDialog />
    </div>
  );
}
