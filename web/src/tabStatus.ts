import { computed, effect, signal } from "@preact/signals";
import { conversationId } from "./branches";
import { openId, openRuns, tick } from "./conversation";
import doneIcon from "./icons/done.svg?no-inline";
import waitingIcon from "./icons/waiting.svg?no-inline";
import workingIcon from "./icons/working.svg?no-inline";
import { isNotified, notify } from "./notifications";
import type { RunModel } from "./run";
import { texts } from "./texts";
import { threads } from "./threads";

const NAME = "maniple";
const NO_BADGE_ICON = "./icon.svg";

/** What the runs of the open conversation do; "done" until a person has looked at the end. */
type TabStatus = "waiting" | "working" | "done" | "idle";
const BADGES: Record<TabStatus, { sign: string; icon: string }> = {
  waiting: { sign: "? ", icon: waitingIcon },
  working: { sign: "● ", icon: workingIcon },
  done: { sign: "✓ ", icon: doneIcon },
  idle: { sign: "", icon: NO_BADGE_ICON },
};

/** The runs that ended while the tab was hidden. */
const endedUnseen = signal<ReadonlySet<string>>(new Set());
const title = computed(() => threads.value.find((one) => one.thread_id === (conversationId.value ?? openId.value))?.title ?? "");

/** Show in title and icon of the tab whether runs work, wait or have ended, and notify of what happens in a hidden tab. */
export function showTabStatus(): void {
  const before = new Map<string, string>();
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) endedUnseen.value = new Set();
  });
  effect(() => {
    void tick.value;
    const runs = openRuns();
    for (const run of runs) {
      const status = statusOf(run);
      if (document.hidden && isNews(before.get(run.runId), status)) report(run, status);
      before.set(run.runId, status);
    }
    const { sign, icon } = BADGES[summarize(runs, endedUnseen.value)];
    document.title = `${sign}${title.value ? `${title.value} · ` : ""}${NAME}`;
    const link = document.querySelector<HTMLLinkElement>("link[rel=icon]");
    if (link && link.getAttribute("href") !== icon) link.href = icon;
  });
}

/** The status of a run; "interrupted" also if it works while one of its steps waits for the user. */
export function statusOf(run: RunModel): string {
  if (run.isAtWork && run.questions.length > 0) return "interrupted";
  return run.isAtWork ? "working" : run.status;
}

/** Whether a person waits for this change: a run that worked has ended or asks, or one that asked has ended. */
export function isNews(before: string | undefined, now: string): boolean {
  return before !== undefined && before !== now && now !== "working" && (before === "working" || before === "interrupted");
}

/** The status of a tab with these runs. */
export function summarize(runs: readonly RunModel[], unseen: ReadonlySet<string>): TabStatus {
  const found = runs.map(statusOf);
  if (found.includes("interrupted")) return "waiting";
  if (found.includes("working")) return "working";
  return runs.some(({ runId }) => unseen.has(runId)) ? "done" : "idle";
}

function report(run: RunModel, status: string): void {
  if (status !== "interrupted") endedUnseen.value = new Set([...endedUnseen.peek(), run.runId]);
  if (isNotified.peek()) notify(title.peek() || run.question || NAME, texts.status[status] ?? status, run.runId);
}
