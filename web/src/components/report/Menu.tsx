import { useRef, useState } from "preact/hooks";
import { texts } from "../../texts";
import type { Entry } from "./entries";

interface Shown {
  entries: readonly Entry[];
  /** Receives the progress and errors of an action. */
  onNews: (news: { text: string; isBad: boolean }) => void;
}

/** The report as a file, and further actions. */
export function Menu({ entries, onNews }: Shown) {
  const menu = useRef<HTMLDetailsElement>(null);
  const [isBusy, setBusy] = useState(false);
  const close = () => {
    if (!menu.current?.open) return false;
    menu.current.open = false;
    menu.current.querySelector("summary")?.focus();
    return true;
  };
  const onKey = (event: KeyboardEvent) => {
    // Escape closes only the menu, not the view around it.
    if (event.key === "Escape" && close()) event.stopPropagation();
  };
  const onLeave = ({ relatedTarget }: FocusEvent) => {
    if (menu.current && !menu.current.contains(relatedTarget as Node | null)) menu.current.open = false;
  };
  const take = async (entry: Entry) => {
    close();
    setBusy(true);
    onNews({ text: `${entry.name}: ${texts.preparing}`, isBad: false });
    try {
      await entry.work();
      onNews({ text: entry.done ?? "", isBad: false });
    } catch (problem) {
      onNews({ text: problem instanceof TypeError ? texts.unreachable : (problem as Error).message, isBad: true });
    } finally {
      setBusy(false);
    }
  };
  return (
    <details class="offers" ref={menu} onKeyDown={onKey} onFocusOut={onLeave}>
      <summary class="chip">{texts.download}</summary>
      <ul>
        {entries.map((entry) => (
          <li key={entry.name}>
            <button disabled={isBusy} onClick={() => void take(entry)}>
              {entry.name}
            </button>
          </li>
        ))}
      </ul>
    </details>
  );
}
