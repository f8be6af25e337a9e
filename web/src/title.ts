import { effect } from "@preact/signals";
import { openId, openRuns, tick } from "./conversation";
import { threads } from "./threads";

const NAME = "maniple";

/** What the tab is called: its conversation, and before it whether the newest run is at work (●) or waits (?). */
export function keepTitle(): void {
  effect(() => {
    void tick.value;
    const run = openRuns().at(-1);
    const sign = run?.isAtWork ? "● " : run?.status === "interrupted" ? "? " : "";
    const title = threads.value.find((one) => one.thread_id === openId.value)?.title;
    document.title = `${sign}${title ? `${title} · ` : ""}${NAME}`;
  });
}
