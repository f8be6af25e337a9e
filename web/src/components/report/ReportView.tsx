import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { References, Source } from "../../references";
import { reference } from "../../references";
import { texts } from "../../texts";
import { Markdown } from "../chat/Markdown";
import { useService } from "../service";
import { Contents, headingsIn } from "./Contents";
import { Menu } from "./Menu";
import { AlsoRead } from "./AlsoRead";
import { downloads, type Entry } from "./entries";

interface Shown {
  runId: string;
  /** The title if the report has none. */
  title: string;
  text: string;
  isWritten: boolean;
  /** Further entries of the menu. */
  more?: readonly Entry[];
  onClose: () => void;
}

interface Found extends References {
  headings: HTMLElement[];
}

/** The answer of a run as a document with contents, sources and unverified passages. */
export function ReportView({ runId, title, text, isWritten, more = [], onClose }: Shown) {
  const service = useService();
  const view = useRef<HTMLElement>(null);
  const [found, setFound] = useState<Found | null>(null);
  const [news, setNews] = useState({ text: "", isBad: false });
  const known = useSources(runId);
  const onWritten = useCallback(
    (place: HTMLElement) => setFound({ ...reference(place, known ?? undefined), headings: headingsIn(place) }),
    [known],
  );
  useFocusInside(view);
  const entries = [
    ...(isWritten ? downloads(service, runId) : []),
    { name: texts.print, work: async () => print() },
    { name: texts.copyMarkdown, work: () => navigator.clipboard.writeText(text), done: texts.copied },
    ...more,
  ];
  const onKey = (event: KeyboardEvent) => event.key === "Escape" && onClose();
  return (
    <section class="reading" ref={view} role="dialog" aria-modal="true" aria-label={title || texts.report} tabIndex={-1} onKeyDown={onKey}>
      <header class="reading-bar">
        <button onClick={onClose}>
          <span aria-hidden="true">←</span> {texts.closeReport}
        </button>
        <p class={news.isBad ? "news bad" : "news"} role={news.isBad ? "alert" : "status"}>{news.text}</p>
        <Menu entries={entries} onNews={setNews} />
      </header>
      <div class="reading-page">
        {found && view.current && <Contents headings={found.headings} view={view.current} />}
        <article>
          {found && found.unverified > 0 && <Unverified count={found.unverified} view={view} />}
          {!/^#\s/m.test(text.slice(0, 2_000)) && title && <h1 class="title">{title}</h1>}
          {known && <Markdown text={text} isWritten={isWritten} runId={runId} onWritten={onWritten} />}
          {found && known && <AlsoRead sources={[...known.values()].filter((one) => !found.entries.has(one.number))} />}
        </article>
      </div>
    </section>
  );
}

/** The sources of the run by number; null until they are loaded, and empty if that fails. */
function useSources(runId: string): ReadonlyMap<number, Source> | null {
  const { ask, has } = useService();
  const [known, setKnown] = useState<ReadonlyMap<number, Source> | null>(null);
  useEffect(() => {
    const leaving = new AbortController();
    const path = `/api/runs/${encodeURIComponent(runId)}/sources`;
    const request = has(path) ? ask(path, { signal: leaving.signal }).then((response) => response.json()) : Promise.resolve({});
    request
      // The report's own list of sources stays.
      .catch(() => ({}))
      .then(({ sources = [] }: { sources?: Source[] }) => setKnown(new Map(sources.map((one) => [one.number, one]))));
    return () => leaving.abort();
  }, [runId]);
  return known;
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

function Unverified({ count, view }: { count: number; view: { current: HTMLElement | null } }) {
  const at = useRef(-1);
  const next = () => {
    const marks = view.current?.querySelectorAll<HTMLElement>(".unverified");
    if (!marks?.length) return;
    at.current = (at.current + 1) % marks.length;
    marks[at.current]!.focus();
  };
  return (
    <p class="notice doubts">
      <span>
        {count === 1 ? texts.oneUnverified : texts.manyUnverified.replace("{}", String(count))} {texts.unverifiedWhy}
      </span>
      <button onClick={next}>{texts.showNext}</button>
    </p>
  );
}
