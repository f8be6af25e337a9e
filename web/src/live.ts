import { ask } from "./api";
import { now, watchClock } from "./clock";
import { usualWishes } from "./components/chat/Options";
import type { Service } from "./components/service";
import { answer, attempt, changePlan, say } from "./conversation";

/** The service that the page came from. */
export const live: Service = {
  ask,
  has: () => true,
  attempt,
  acts: { askAgain: (run) => say(run.question, usualWishes(), []), answer, changePlan },
  clock: { now, watch: watchClock },
};
