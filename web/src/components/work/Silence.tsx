import { useEffect } from "preact/hooks";
import { lasted } from "../../clock";
import { models } from "../../models";
import type { Call, Turn } from "../../parts";
import { callName } from "../../purpose";
import type { RunModel } from "../../run";
import { texts } from "../../texts";
import { useService } from "../service";

/** After how many seconds without an event a silence is said. */
const SILENT = 10;

/** Says who has been silent for how long while a run works: a member's model or tool, or the team between two members. */
export function Silence({ run }: { run: RunModel; version: number }) {
  const { clock } = useService();
  const isWorking = run.status === "running";
  useEffect(() => (isWorking ? clock.watch() : undefined), [isWorking, clock]);
  if (!isWorking) return null;
  const lines = silences(run, clock.now.value);
  if (lines.length === 0) return null;
  const isSlow = models.value?.embedded === true && waitsForModel(run);
  return (
    <div class="notice silence">
      {lines.map((line, at) => (
        <p key={at}>{line}</p>
      ))}
      {isSlow && <p>{texts.slowModel}</p>}
    </div>
  );
}

/** A line for each member that is silent at `now`, in Unix seconds. One that asks waits for the user, and one without a model is said otherwise. */
export function silences(run: RunModel, now: number): string[] {
  const asks = new Set(run.questions.map((one) => one.agent_id));
  const open = run.turns.filter((turn) => turn.isOpen);
  if (open.length === 0) return isSilent(run.heard, now) ? [texts.silentTeam(lasted(now - run.heard!))] : [];
  return open.filter((turn) => isSilent(turn.heard, now) && !turn.outage && !asks.has(turn.id)).map((turn) => silenceOf(turn, lasted(now - turn.heard!)));
}

function waitsForModel({ turns }: RunModel): boolean {
  return turns.some((turn) => turn.isOpen && openCallOf(turn) === undefined);
}

/** The call of a member that has not returned. */
function openCallOf({ parts }: Turn): Call | undefined {
  const call = parts.findLast((part) => part.kind === "call");
  return call?.result === null ? call : undefined;
}

function silenceOf(turn: Turn, time: string): string {
  const call = openCallOf(turn);
  return call ? texts.silentTool(turn.agent, callName(call.tool), time) : texts.silentModel(turn.agent, time);
}

function isSilent(heard: number | null, now: number): boolean {
  return heard !== null && now - heard > SILENT;
}
