import { useRef } from "preact/hooks";
import { openRuns, tick } from "../conversation";
import type { RunModel } from "../run";
import { texts } from "../texts";

/** Announces to screen readers when an answer starts, ends or waits for the user, but not its text. */
export function Announcer() {
  const watched = useRef<string | null>(null);
  void tick.value;
  const run = openRuns().at(-1);
  // Runs that had ended when the conversation was opened are not announced.
  if (run?.isAtWork) watched.current = run.runId;
  return (
    <p class="unseen" aria-live="polite">
      {run && run.runId === watched.current ? standingOf(run) : ""}
    </p>
  );
}

function standingOf(run: RunModel): string {
  if (run.isAtWork && run.questions.length > 0) return texts.status["interrupted"]!;
  const isAnswering = run.status === "running" && run.answer?.content;
  return isAnswering ? texts.answering : (texts.status[run.status] ?? run.status);
}
