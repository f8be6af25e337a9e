import { useRef } from "preact/hooks";
import { openRuns, tick } from "../conversation";
import type { RunModel } from "../run";
import { words } from "../words";

/** Says to who does not see it when an answer is begun, is done, or waits for them: never each word of it. */
export function Announcer() {
  const watched = useRef<string | null>(null);
  void tick.value;
  const run = openRuns().at(-1);
  // What was over when its conversation was opened is no news.
  if (run?.isAtWork) watched.current = run.runId;
  return (
    <p class="unseen" aria-live="polite">
      {run && run.runId === watched.current ? standingOf(run) : ""}
    </p>
  );
}

function standingOf(run: RunModel): string {
  const isAnswering = run.status === "running" && run.answer?.content;
  return isAnswering ? words.answering : (words.status[run.status] ?? run.status);
}
