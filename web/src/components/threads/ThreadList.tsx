import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { conversationId } from "../../branches";
import { apiKey } from "../../api";
import { attempt, openId, tellTabs } from "../../conversation";
import { type Thread, deleteThread, hasMore, isUnread, readFor, refreshThreads, renameThread, searched, showMore, threads } from "../../threads";
import { found } from "../../search";
import { labelled, texts } from "../../texts";
import { Appearance } from "./Appearance";
import { FoundList } from "./FoundList";

const SEARCH_AFTER_MS = 200;
/** The name, in `texts.status`, of what a conversation is worth mentioning for. */
const STANDING: Partial<Record<Thread["status"], string>> = { busy: "running", interrupted: "interrupted", error: "failed" };

interface Shown {
  onChoice: () => void;
  onLogOut: () => void;
}

export function ThreadList({ onChoice, onLogOut }: Shown) {
  useEffect(() => {
    const timer = setTimeout(() => void refreshThreads().catch(() => undefined), SEARCH_AFTER_MS);
    return () => clearTimeout(timer);
  }, [searched.value]);
  return (
    <nav class="threads" aria-label={texts.threads}>
      <p class="brand"><img class="logo" src="./icon.svg" alt="" />maniple</p>
      <a class="new" href="#" onClick={onChoice}>
        <span aria-hidden="true">+</span> {texts.newThread}
      </a>
      <input
        type="search"
        aria-label={texts.search}
        placeholder={texts.search}
        value={searched.value}
        onInput={(e) => (searched.value = e.currentTarget.value)}
      />
      <div class="list">
        <ul>
          {threads.value.map((one) => (
            <Entry key={one.thread_id} thread={one} onChoice={onChoice} />
          ))}
        </ul>
        <FoundList onChoice={onChoice} />
        <Empty />
        {hasMore.value && <button onClick={() => void attempt(showMore)}>{texts.more}</button>}
      </div>
      <Appearance />
      {apiKey.value && <button class="log-out" title={texts.logOutHint} onClick={onLogOut}>{texts.logOut}</button>}
    </nav>
  );
}

/** Why the list is empty or outdated. */
function Empty() {
  if (isUnread.value) {
    return (
      <p class="faint" role="status">
        {texts.unread} <button onClick={() => void refreshThreads().catch(() => undefined)}>{texts.tryAgain}</button>
      </p>
    );
  }
  if (threads.value.length > 0 || found.value.length > 0 || readFor.value === null) return null;
  return <p class="faint" role="status">{readFor.value ? texts.notFound : texts.none}</p>;
}

function Entry({ thread, onChoice }: { thread: Thread; onChoice: () => void }) {
  const [isNaming, setNaming] = useState(false);
  const title = thread.title || texts.untitled;
  const standing = STANDING[thread.status];
  const isOpen = thread.thread_id === (conversationId.value ?? openId.value);
  const entry = useRef<HTMLLIElement>(null);
  const wasNaming = useRef(false);
  useEffect(() => {
    if (wasNaming.current && !isNaming) entry.current?.querySelector("a")?.focus();
    wasNaming.current = isNaming;
  }, [isNaming]);
  const remove = () =>
    attempt(async () => {
      if (!confirm(texts.removeSure(title))) return;
      await deleteThread(thread.thread_id);
      const next = entry.current?.nextElementSibling ?? entry.current?.previousElementSibling;
      if (isOpen) location.hash = "";
      tellTabs();
      await refreshThreads();
      (next?.querySelector("a") ?? document.querySelector<HTMLElement>(".threads .new"))?.focus();
    });
  if (isNaming) return <Naming thread={thread} onEnd={() => setNaming(false)} />;
  return (
    <li class={isOpen ? "open" : ""} ref={entry}>
      <a href={`#${encodeURIComponent(isOpen ? openId.value ?? thread.thread_id : thread.newest_branch)}`} aria-current={isOpen ? "page" : undefined} onClick={onChoice}>
        <span class="name">{title}</span>
        <span class={`dot ${thread.status}`} aria-hidden="true" />
        {standing && <span class="unseen">, {texts.status[standing]}</span>}
      </a>
      <button aria-label={labelled(texts.rename, title)} title={texts.rename} onClick={() => setNaming(true)}>
        <span aria-hidden="true">✎</span>
      </button>
      <button aria-label={labelled(texts.remove, title)} title={texts.remove} onClick={() => void remove()}>
        <span aria-hidden="true">×</span>
      </button>
    </li>
  );
}

function Naming({ thread, onEnd }: { thread: Thread; onEnd: () => void }) {
  const field = useRef<HTMLInputElement>(null);
  // Before the next key, which may be the first letter of the new name.
  useLayoutEffect(() => field.current?.select(), []);
  // A field that is removed may fire `blur` again.
  const isOver = useRef(false);
  const end = (title: string) => {
    if (isOver.current) return;
    isOver.current = true;
    onEnd();
    if (title === "" || title === thread.title) return;
    void attempt(async () => {
      await renameThread(thread.thread_id, title);
      tellTabs();
      await refreshThreads();
    });
  };
  const keep = () => end(field.current?.value.trim() ?? "");
  return (
    <li>
      <form onSubmit={(e) => (e.preventDefault(), keep())} onKeyDown={(e) => e.key === "Escape" && end("")}>
        <input ref={field} aria-label={texts.rename} maxLength={200} defaultValue={thread.title} onBlur={keep} />
      </form>
    </li>
  );
}
