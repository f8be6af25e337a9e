import { useEffect, useRef, useState } from "preact/hooks";
import { reading, stopReading } from "../../address";
import { keyWanted } from "../../api";
import { conversationId } from "../../branches";
import { openId, openRuns, tick } from "../../conversation";
import { threads } from "../../threads";
import { texts } from "../../texts";
import { useService } from "../service";
import { ReportView, useFocusInside } from "./ReportView";
import type { Entry } from "./entries";

/** The report named by the URL, shown over the page. */
export function Reading({ more = [] }: { more?: readonly Entry[] }) {
  void tick.value;
  const runId = reading.value;
  if (runId === null || keyWanted.value !== null) return null;
  const run = openRuns().find((one) => one.runId === runId);
  const title = run?.plan?.title || threads.value.find((one) => one.thread_id === (conversationId.value ?? openId.value))?.title || run?.question.slice(0, 200) || "";
  const text = run?.answer?.content;
  if (run && text) return <ReportView key={runId} runId={runId} title={title} text={text} isWritten={run.isComplete} isFinal={run.isOver} more={more} onClose={stopReading} />;
  const isOlder = !run && openRuns().length > 0;
  return isOlder ? <Older key={runId} runId={runId} title={title} more={more} /> : null;
}

/** The stored report of a run that is not on the page. */
function Older({ runId, title, more }: { runId: string; title: string; more: readonly Entry[] }) {
  const { ask, attempt } = useService();
  const [text, setText] = useState("");
  useEffect(() => {
    const path = `/api/runs/${encodeURIComponent(runId)}/report`;
    const read = async () => setText(await (await ask(path, { headers: { accept: "text/markdown" } })).text());
    // Errors are shown on the page below.
    void attempt(read).then((isRead) => !isRead && reading.value === runId && stopReading());
  }, [runId]);
  if (!text) return <Awaited title={title} />;
  return <ReportView runId={runId} title={title} text={text} isWritten isFinal more={more} onClose={stopReading} />;
}

/** The frame of a report that is being loaded. */
function Awaited({ title }: { title: string }) {
  const view = useRef<HTMLElement>(null);
  useFocusInside(view);
  const onKey = (event: KeyboardEvent) => event.key === "Escape" && stopReading();
  return (
    <section class="reading" ref={view} role="dialog" aria-modal="true" aria-label={title || texts.report} tabIndex={-1} onKeyDown={onKey}>
      <header class="reading-bar">
        <button onClick={stopReading}>
          <span aria-hidden="true">←</span> {texts.closeReport}
        </button>
        <p class="news" role="status">{texts.preparing}</p>
      </header>
    </section>
  );
}
