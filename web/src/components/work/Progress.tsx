import { useEffect } from "preact/hooks";
import { lasted } from "../../clock";
import { countDone } from "../../planProgress";
import type { RunModel } from "../../run";
import { texts } from "../../texts";
import { useService } from "../service";
import { dutyOf } from "../../members";

interface Shown {
  run: RunModel;
  version: number;
}

/** How far a run at work is, in one line: the steps that are done, and those under way. */
export function Progress({ run, version }: Shown) {
  if (!run.isAtWork) return null;
  return <p class="progress"><span class="pulse" aria-hidden="true" /> <ProgressText run={run} version={version} /> <WorkedFor run={run} version={version} /></p>;
}

export function ProgressText({ run }: Shown) {
  const steps = (run.draft ?? run.plan)?.steps.filter((step) => !step.repeats) ?? [];
  const { done, all } = countDone(steps);
  const underWay = run.isAtWork ? steps.filter((step) => step.status === "in_progress").map((step) => step.title) : [];
  const members = run.isAtWork ? run.turns.filter((turn) => turn.isOpen).map((turn) => turn.agent) : [];
  const doing = underWay.length > 0 ? underWay : members;
  const duty = underWay.length === 0 && members.length === 1 ? dutyOf(members[0]!) : "";
  return (
    <>
      {steps.length > 0 && <span class="who">{texts.plan} {done}/{all}</span>} {doing.join(" · ")}
      {duty && <span class="faint"> {duty}</span>}
    </>
  );
}

/** How long the run has worked since the question, over all members; it does not count while it waits for the user. */
export function WorkedFor({ run }: Shown) {
  const { clock } = useService();
  const counts = run.isAtWork;
  useEffect(() => (counts ? clock.watch() : undefined), [counts, clock]);
  const time = run.worked(counts ? clock.now.value : 0);
  return time === null ? null : <span class="who" title={texts.workedFor}>{lasted(time)}</span>;
}

/** Says that the run waits for what is away, or that the model of a member does not answer, and for how long. */
export function Outage({ run }: Shown) {
  if (run.outage) {
    const until = new Date(run.outage.until * 1000).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
    return <p class="notice" role="status">{texts.runWaits[run.outage.waitingFor](until)}</p>;
  }
  const outage = run.isAtWork ? run.turns.findLast((turn) => turn.isOpen && turn.outage)?.outage : null;
  return outage ? <p class="notice" role="status">{texts.modelGone(outage.attempt, Math.round(outage.left))}</p> : null;
}
