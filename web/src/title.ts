import { effect } from "@preact/signals";
import { conversationId } from "./branches";
import { openId, openRuns, tick } from "./conversation";
import { threads } from "./threads";

const NAME = "maniple";

/** The title of the tab: the conversation, after a sign that the newest run is in progress (●) or waits (?). */
export function updateTitle(): void {
  effect(() => {
    void tick.value;
    const run = openRuns().at(-1);
    const isAsking = run?.status === "interrupted" || (run?.isAtWork && run.questions.length > 0);
    const sign = isAsking ? "? " : run?.isAtWork ? "● " : "";
    const title = threads.value.find((one) => one.thread_id === (conversationId.value ?? openId.value))?.title;
    document.title = `${sign}${title ? `${title} · ` : ""}${NAME}`;
  });
}
