import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { besideRun, tick } from "../../conversation";
import type { RunModel } from "../../run";
import { texts } from "../../texts";
import { useFocusKept } from "../focus";
import { ProgressText, WorkedFor } from "./Progress";
import { RunActions, RunPlan } from "./RunWork";

/** The distance from the end, in pixels, within which new work is followed. */
const NEAR_END = 60;

/**
 * The plan and the work of the run that works, waits or is the newest. In a wide window it stands beside the
 * conversation; else it is a sheet above the composer, which is open while the team works and nothing waits.
 */
export function LivePanel() {
  void tick.value;
  const run = besideRun();
  return run ? <Panel key={run.runId} run={run} version={run.version} /> : null;
}

export function Panel({ run, version }: { run: RunModel; version: number }) {
  const [chosen, setChosen] = useState<boolean | null>(null);
  const place = useRef<HTMLElement>(null);
  const hold = useFocusKept(() => place.current?.querySelector<HTMLElement>(".panel-work") ?? null);
  const isDue = opensItself(run);
  const isOpen = chosen ?? isDue;
  // It does not close on somebody who is in it.
  useLayoutEffect(() => {
    if (!isDue && place.current?.contains(document.activeElement)) setChosen((choice) => choice ?? true);
  }, [isDue]);
  const isEmpty = !run.draft && !run.plan && run.turns.length === 0;
  return (
    <aside class={`panel ${isOpen ? "open" : ""}`} ref={place} aria-label={texts.panel} onFocusIn={hold}>
      <button class="handle" aria-expanded={isOpen} onClick={() => setChosen(!isOpen)}>
        <span aria-hidden="true">{isOpen ? "▾" : "▴"}</span> <span class="unseen">{texts.showPanel}</span>
        <span class="doing"><ProgressText run={run} version={version} /></span>
        <WorkedFor run={run} version={version} />
      </button>
      <div class="pinned"><RunPlan run={run} version={version} /></div>
      <Following run={run} version={version} />
      {isEmpty && <p class="faint empty">{texts.panelEmpty}</p>}
    </aside>
  );
}

/** Whether the sheet is open unless the user decides: for the work, and for a plan to be reviewed. */
function opensItself({ isAtWork, forms }: RunModel): boolean {
  return forms.length === 0 ? isAtWork : forms.every(({ kind }) => kind === "plan_review");
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
