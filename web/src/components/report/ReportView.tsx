import { useEffect, useRef, useState } from "preact/hooks";
import { texts } from "../../texts";
import { useService } from "../service";
import { Menu } from "./Menu";
import { type ReportParts, ReportText } from "./ReportText";
import { type Entry, entriesOf } from "./entries";

interface Shown extends ReportParts {
  /** Further entries of the menu. */
  more?: readonly Entry[];
  onClose: () => void;
}

/** The answer of a run as a document over the page, with its menu. */
export function ReportView({ more = [], onClose, ...report }: Shown) {
  const service = useService();
  const view = useRef<HTMLElement>(null);
  const [news, setNews] = useState({ text: "", isBad: false });
  useFocusInside(view);
  const entries = [...entriesOf(service, report), { name: texts.print, work: async () => print() }, ...more];
  const onKey = (event: KeyboardEvent) => event.key === "Escape" && onClose();
  return (
    <section class="reading" ref={view} role="dialog" aria-modal="true" aria-label={report.title || texts.report} tabIndex={-1} onKeyDown={onKey}>
      <header class="reading-bar">
        <button onClick={onClose}>
          <span aria-hidden="true">←</span> {texts.closeReport}
        </button>
        <p class={news.isBad ? "news bad" : "news"} role={news.isBad ? "alert" : "status"}>{news.text}</p>
        <Menu entries={entries} onNews={setNews} />
      </header>
      <ReportText {...report} view={view} />
    </section>
  );
}

/** Move the focus into the view and make the rest of the page inert; undo both at the end. */
export function useFocusInside(view: { current: HTMLElement | null }): void {
  useEffect(() => {
    const before = document.activeElement;
    const others = [...(view.current?.parentElement?.children ?? [])].filter((one) => one !== view.current);
    const reach = (isOut: boolean) => others.forEach((one) => one.toggleAttribute("inert", isOut));
    reach(true);
    view.current?.focus();
    return () => {
      reach(false);
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
}
