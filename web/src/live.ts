import { ask } from "./api";
import { now, watchClock } from "./clock";
import { usualWishes } from "./components/chat/Options";
import type { Service } from "./components/service";
import { answer, attempt, changePlan, say } from "./conversation";
import type { RunModel } from "./run";
import { save } from "./save";

/** The service that the page came from. */
export const live: Service = {
  ask,
  has: () => true,
  attempt,
  acts: { askAgain: (run) => say(run.question, usualWishes(), []), answer, changePlan, share },
  clock: { now, watch: watchClock },
};

function share(run: RunModel): Promise<boolean> {
  return attempt(async () => save(await ask(`/api/runs/${run.runId}/replay`), "replay.html"));
}
