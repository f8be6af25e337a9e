import { ask } from "./api";
import { now, watchClock } from "./clock";
import { chosenOptions } from "./components/chat/Options";
import type { Service } from "./components/service";
import { answerInWords } from "./composing";
import { answer, askAgain, attempt, branch, cancel, changePlan, isAskedHere, isForemost, retry } from "./conversation";
import { save } from "./download";

/** The service that the page came from. */
export const live: Service = {
  ask,
  has: () => true,
  attempt,
  acts: { askAgain: (run) => askAgain(run.question, chosenOptions()), answer, answerInWords, branch: (run, text) => branch(run, text, chosenOptions()), cancel, changePlan, isAskedHere, isForemost, retry, share: (run) => attempt(() => share(run.runId)) },
  clock: { now, watch: watchClock },
};

/** Save a run as a file that plays it. */
export async function share(runId: string): Promise<void> {
  await save(await ask(`/api/runs/${encodeURIComponent(runId)}/replay`), "replay.html");
}
