import type { RefObject } from "preact";
import { useState } from "preact/hooks";
import { reading, startReading } from "../../address";
import type { RunModel } from "../../run";
import { texts } from "../../texts";
import { Menu } from "../report/Menu";
import { ReportText } from "../report/ReportText";
import { entriesOf } from "../report/entries";
import { useService } from "../service";

interface Shown {
  run: RunModel;
  version: number;
  /** The element that scrolls the report. */
  view: RefObject<HTMLElement | null>;
}

/** The report of a run, which can be taken away as a file, or read over the whole page. */
export function ReportTab({ run, view }: Shown) {
  const service = useService();
  const [news, setNews] = useState({ text: "", isBad: false });
  if (!run.plan || !run.answer?.content) return <p class="faint">{texts.noReport}</p>;
  const { runId, isComplete: isWritten, isOver: isFinal } = run;
  const report = { runId, title: run.plan.title, text: run.answer.content, isWritten, isFinal };
  return (
    <>
      <header class="report-bar">
        <button onClick={() => startReading(runId)}>{texts.readWhole}</button>
        <Menu entries={entriesOf(service, report)} onNews={setNews} />
        <p class={news.isBad ? "news bad" : "news"} role={news.isBad ? "alert" : "status"}>{news.text}</p>
      </header>
      {/* Over the whole page it is shown once. */}
      {reading.value !== runId && <ReportText {...report} view={view} isNarrow />}
    </>
  );
}
