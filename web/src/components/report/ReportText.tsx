import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type CheckedClaims, explanations, NOTHING_CHECKED, scoreText } from "../../claims";
import { reference, type Source } from "../../references";
import { texts } from "../../texts";
import { Markdown } from "../chat/Markdown";
import { useService } from "../service";
import { Contents, headingsIn } from "./Contents";
import { AlsoRead } from "./AlsoRead";
import { ClaimList } from "./ClaimList";

export interface ReportParts {
  runId: string;
  /** The title if the report has none. */
  title: string;
  text: string;
  isWritten: boolean;
  /** Whether the run has ended. */
  isFinal: boolean;
}

interface Shown extends ReportParts {
  /** The element that scrolls it. */
  view: { readonly current: HTMLElement | null };
  /** Whether its contents have no room beside it. */
  isNarrow?: boolean;
}

/** The rendered text. */
interface Written {
  place: HTMLElement;
  headings: HTMLElement[];
  unverified: number;
}

/** A report with contents, sources, claims and unverified passages. */
export function ReportText({ runId, title, text, isWritten, isFinal, view, isNarrow = false }: Shown) {
  const [written, setWritten] = useState<Written | null>(null);
  const [listed, setListed] = useState<ReadonlySet<number> | null>(null);
  const evidence = useEvidence(runId, isFinal);
  const list = useRef<HTMLDetailsElement>(null);
  const showClaim = useCallback((index: number) => {
    if (list.current) list.current.open = true;
    list.current?.querySelectorAll<HTMLElement>(".claim")[index]?.focus();
  }, []);
  const onWritten = useCallback(
    (place: HTMLElement) =>
      setWritten({ place, headings: headingsIn(place), unverified: place.querySelectorAll("mark").length }),
    [],
  );
  // The text is shown without waiting for what is known about it.
  useEffect(() => {
    if (!written || !evidence) return;
    const { sources, checked } = evidence;
    if (checked.claims.length > 0) hideScore(written.place, scoreText(checked));
    setListed(reference(written.place, sources, explanations(checked), showClaim));
  }, [written, evidence]);
  return (
    <div class="reading-page">
      {written && view.current && <Contents headings={written.headings} view={view.current} isFolded={isNarrow} />}
      <article>
        {written && written.unverified > 0 && <Unverified count={written.unverified} view={view} />}
        {!/^#\s/m.test(text.slice(0, 2_000)) && title && <h1 class="title">{title}</h1>}
        <Markdown text={text} isWritten={isWritten} isFinal={isFinal} runId={runId} onWritten={onWritten} />
        {listed && evidence && (
          <>
            <ClaimList checked={evidence.checked} sources={evidence.sources} list={list} />
            <AlsoRead sources={[...evidence.sources.values()].filter((one) => !listed.has(one.number))} />
          </>
        )}
      </article>
    </div>
  );
}

interface Evidence {
  /** The sources of the run by number. */
  sources: ReadonlyMap<number, Source>;
  checked: CheckedClaims;
}

/** What the service knows about a report; null until it is loaded, and empty as far as that fails. */
function useEvidence(runId: string, isFinal: boolean): Evidence | null {
  const { ask, has } = useService();
  const [evidence, setEvidence] = useState<Evidence | null>(null);
  useEffect(() => {
    const leaving = new AbortController();
    const load = async <Data,>(name: string, nothing: Data): Promise<Data> => {
      const path = `/api/runs/${encodeURIComponent(runId)}/${name}`;
      if (!has(path)) return nothing;
      // Without it, the report's own list of sources stays, and marks have no reasons; a run at work has no claims yet.
      return ask(path, { signal: leaving.signal }).then((response) => response.json() as Promise<Data>).catch(() => nothing);
    };
    void Promise.all([load("sources", { sources: [] as Source[] }), load("claims", NOTHING_CHECKED)]).then(
      ([{ sources }, checked]) => setEvidence({ sources: new Map(sources.map((one) => [one.number, one])), checked }),
    );
    return () => leaving.abort();
  }, [runId, isFinal]);
  return evidence;
}

/** Hide the score at the end of the text: it opens the list of claims. */
function hideScore(place: HTMLElement, score: string): void {
  const last = [...place.querySelectorAll<HTMLElement>("p > em:only-child")].at(-1);
  if (last && score && last.textContent === score && last.parentElement!.textContent.trim() === score) last.parentElement!.hidden = true;
}

function Unverified({ count, view }: { count: number; view: { current: HTMLElement | null } }) {
  const at = useRef(-1);
  const next = () => {
    const marks = view.current?.querySelectorAll<HTMLElement>("mark");
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
