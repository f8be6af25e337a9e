import { useRef, useState } from "preact/hooks";
import { labelled, listed, texts } from "../../texts";
import type { Entry } from "./entries";

interface Shown {
  entries: readonly Entry[];
  /** Receives the progress and errors of an action. */
  onNews: (news: { text: string; isBad: boolean }) => void;
}

/** The report as a file, and further actions. */
export function Menu({ entries, onNews }: Shown) {
  const menu = useRef<HTMLDetailsElement>(null);
  const [underWay, setUnderWay] = useState<ReadonlySet<string>>(new Set());
  const close = () => {
    if (!menu.current?.open) return false;
    menu.current.open = false;
    menu.current.querySelector("summary")?.focus({ preventScroll: true });
    return true;
  };
  const onKey = (event: KeyboardEvent) => {
    // Escape closes only the menu, not the view around it.
    if (event.key === "Escape" && close()) event.stopPropagation();
  };
  const onLeave = ({ relatedTarget }: FocusEvent) => {
    if (menu.current && !menu.current.contains(relatedTarget as Node | null)) menu.current.open = false;
  };
  const work = useRef(underWay);
  const now = (names: Iterable<string>) => setUnderWay((work.current = new Set(names)));
  const take = async (entry: Entry) => {
    close();
    // What is under way is named until it has ended, also when another one is asked for meanwhile.
    if (work.current.has(entry.name)) return;
    now([...work.current, entry.name]);
    onNews({ text: preparing(work.current), isBad: false });
    const end = (news: { text: string; isBad: boolean }) => {
      now([...work.current].filter((name) => name !== entry.name));
      onNews(work.current.size > 0 ? { ...news, text: `${news.text} ${preparing(work.current)}` } : news);
    };
    try {
      await entry.work();
      end({ text: entry.done ?? "", isBad: false });
    } catch (problem) {
      end({ text: labelled(entry.name, problem instanceof TypeError ? texts.unreachable : (problem as Error).message), isBad: true });
    }
  };
  return (
    <details class="offers" ref={menu} onKeyDown={onKey} onFocusOut={onLeave}>
      <summary class="chip">{texts.download}</summary>
      <ul>
        {entries.map((entry) => (
          <li key={entry.name}>
            <button onClick={() => void take(entry)}>
              {entry.name} {underWay.has(entry.name) && <span class="faint">{texts.preparing}</span>}
            </button>
          </li>
        ))}
      </ul>
    </details>
  );
}

function preparing(names: ReadonlySet<string>): string {
  return labelled(listed(names), texts.preparing);
}
