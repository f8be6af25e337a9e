import type { RunModel } from "../../run";
import { PlanList } from "../plan/PlanList";
import { BrowserView } from "./BrowserView";
import { Timeline } from "./Timeline";

interface Shown {
  run: RunModel;
  version: number;
  isWatched?: boolean;
}

/** The plan of a run, its work and its browser, as they stand in the conversation. */
export function RunWork({ run, version, isWatched = false }: Shown) {
  return (
    <>
      <RunPlan run={run} version={version} />
      <RunActions run={run} version={version} isWatched={isWatched} />
    </>
  );
}

export function RunPlan({ run, version }: Shown) {
  const plan = run.draft ?? run.plan;
  return plan && <PlanList run={run} version={version} plan={plan} />;
}

/** What the members do. The browser is there from its first picture; before that, and between its turns, it is folded. */
export function RunActions({ run, version, isWatched = false }: Shown) {
  const { recording, isBrowsing } = run;
  const isShown = isBrowsing ? recording.picture !== null : recording.isThere;
  return (
    <>
      <Timeline run={run} version={version} isWatched={isWatched} />
      {isShown && <BrowserView recording={recording} isLive={isBrowsing} version={version} />}
    </>
  );
}
