import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { besideRun, tick } from "../../conversation";
import type { RunModel } from "../../run";
import { texts } from "../../texts";
import { BrowserPlayer } from "../work/BrowserView";
import { ProgressText, WorkedFor } from "../work/Progress";
import { RunActions, RunPlan } from "../work/RunWork";
import { FilesTab } from "./FilesTab";
import { ReportTab } from "./ReportTab";
import { SourcesTab } from "./SourcesTab";
import { type Tab, Tabs, tabPanel } from "./Tabs";

/** The distance from the end, in pixels, within which new work is followed. */
const NEAR_END = 60;

/**
 * What the run that works, waits or is the newest does and has made. In a wide window it stands beside the
 * conversation; else it is a sheet above the composer, which is open while the team works and nothing waits.
 */
export function LivePanel() {
  void tick.value;
  const run = besideRun();
  return run ? <Panel key={run.runId} run={run} version={run.version} /> : null;
}

export function Panel({ run, version }: { run: RunModel; version: number }) {
  const [chosen, setChosen] = useState<boolean | null>(null);
  const [tab, setTab] = useState<Tab | null>(null);
  const place = useRef<HTMLElement>(null);
  const isDue = opensItself(run);
  const isOpen = chosen ?? isDue;
  const due = dueTab(run);
  const before = useRef(due);
  // Neither closes nor changes what is shown to somebody who is in it.
  const isInside = () => place.current?.contains(document.activeElement);
  useLayoutEffect(() => {
    if (!isDue && isInside()) setChosen((choice) => choice ?? true);
  }, [isDue]);
  useLayoutEffect(() => {
    const last = before.current;
    before.current = due;
    if (last !== due && isInside()) setTab((choice) => choice ?? last);
  }, [due]);
  const selected = tab ?? due;
  return (
    <aside class={`panel ${isOpen ? "open" : ""}`} ref={place} aria-label={texts.panel}>
      <button class="handle" aria-expanded={isOpen} onClick={() => setChosen(!isOpen)}>
        <span aria-hidden="true">{isOpen ? "▾" : "▴"}</span> <span class="unseen">{texts.showPanel}</span>
        <span class="doing"><ProgressText run={run} version={version} /></span>
        <WorkedFor run={run} version={version} />
      </button>
      <Tabs selected={selected} onSelect={setTab} />
      <Now run={run} version={version} isHidden={selected !== "now"} />
      {selected !== "now" && <Body key={selected} tab={selected} run={run} version={version} />}
    </aside>
  );
}

/** Whether the sheet is open unless the user decides: for the work, and for a plan to be reviewed. */
function opensItself({ isAtWork, forms }: RunModel): boolean {
  return forms.length === 0 ? isAtWork : forms.every(({ kind }) => kind === "plan_review");
}

/** The tab that is selected unless the user decides: the work, and at the end the report. */
function dueTab({ plan, answer, isOver, isComplete }: RunModel): Tab {
  return plan && answer?.content && isOver && isComplete ? "report" : "now";
}

interface Shown {
  run: RunModel;
  version: number;
}

/** The plan and the work. It stays while another tab is selected, with what the user has unfolded. */
function Now({ run, version, isHidden }: Shown & { isHidden: boolean }) {
  const isEmpty = !run.draft && !run.plan && run.turns.length === 0;
  return (
    <div class="panel-now" hidden={isHidden} {...tabPanel("now")}>
      <div class="pinned"><RunPlan run={run} version={version} /></div>
      <Following run={run} version={version} />
      {isEmpty && <p class="faint empty">{texts.panelEmpty}</p>}
    </div>
  );
}

/** What is behind the other tabs. */
function Body({ tab, run, version }: Shown & { tab: Exclude<Tab, "now"> }) {
  const view = useRef<HTMLDivElement>(null);
  return (
    <div class={`panel-body tab-${tab}`} ref={view} tabIndex={0} {...tabPanel(tab)}>
      {tab === "browser" && (run.recording.isThere ? <BrowserPlayer recording={run.recording} isLive={run.isBrowsing} version={version} /> : <p class="faint">{texts.noBrowser}</p>)}
      {tab === "files" && <FilesTab run={run} version={version} />}
      {tab === "sources" && <SourcesTab run={run} version={version} />}
      {tab === "report" && <ReportTab run={run} version={version} view={view} />}
    </div>
  );
}

/** The work, whose end stays in view while the run works, unless the user scrolls back. */
function Following({ run, version }: { run: RunModel; version: number }) {
  const place = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const isAtWork = useRef(run.isAtWork);
  isAtWork.current = run.isAtWork;
  const toEnd = () => {
    if (follows.current && isAtWork.current && place.current) place.current.scrollTop = place.current.scrollHeight;
  };
  useLayoutEffect(toEnd);
  useEffect(() => {
    const watcher = new ResizeObserver(toEnd);
    watcher.observe(place.current!.firstElementChild!);
    return () => watcher.disconnect();
  }, []);
  const note = ({ currentTarget: { scrollHeight, scrollTop, clientHeight } }: { currentTarget: HTMLDivElement }) =>
    void (follows.current = scrollHeight - scrollTop - clientHeight < NEAR_END);
  return (
    <div class="panel-work" ref={place} tabIndex={0} role="group" aria-label={texts.work} onScroll={note}>
      <div class="inner"><RunActions run={run} version={version} /></div>
    </div>
  );
}
