import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { unfolded } from "../../passage";
import type { RunModel } from "../../run";
import { texts } from "../../texts";
import { Markdown } from "./Markdown";
import { announceUnfolding } from "./autoscroll";

interface Shown {
  run: RunModel;
  text: string;
  /** Whether the panel beside the conversation shows the text as the report of the run. */
  isReported: boolean;
}

/**
 * The answer of a run. A long one that the panel shows as the report is clipped where the panel stands beside the
 * conversation. It unfolds on request, and when the focus, a citation or a search leads into what is clipped.
 */
export function Answer({ run, text, isReported }: Shown) {
  const place = useRef<HTMLDivElement>(null);
  const [isWhole, setWhole] = useState(false);
  const [isLong, setLong] = useState(false);
  // What the clipped text was scrolled by, which the conversation then is.
  const scrolled = useRef(0);
  const isClipped = isReported && isLong && !isWhole && unfolded.value !== run.runId;
  useLayoutEffect(() => {
    if (!isReported) return;
    const measure = () => isClippable(place.current!) && setLong(true);
    const watcher = new ResizeObserver(measure);
    watcher.observe(place.current!.firstElementChild!);
    return () => watcher.disconnect();
  }, [isReported]);
  useLayoutEffect(() => {
    if (isClipped || scrolled.current === 0) return;
    conversationOf(place.current!)?.scrollBy({ top: scrolled.current });
    scrolled.current = 0;
  }, [isClipped]);
  const unfold = () => {
    announceUnfolding(place.current!);
    scrolled.current = place.current!.scrollTop;
    setWhole(true);
  };
  const onButton = () => {
    unfold();
    // The button goes.
    place.current!.focus({ preventScroll: true });
  };
  return (
    <>
      <div class={isClipped ? "answer clipped" : "answer"} ref={place} tabIndex={-1} onScroll={() => isClipped && place.current!.scrollTop > 0 && unfold()}>
        <Markdown text={text} isWritten={run.isComplete} isFinal={run.isOver} runId={run.runId} />
      </div>
      {isClipped && <button class="unclip" aria-expanded={false} onClick={onButton}>{texts.wholeAnswer}</button>}
    </>
  );
}

/** Whether an answer is longer than the conversation is high, and nobody reads in the middle of it, whose place would be lost. */
function isClippable(answer: HTMLElement): boolean {
  const view = conversationOf(answer)?.getBoundingClientRect();
  const { top, bottom } = answer.getBoundingClientRect();
  return view !== undefined && answer.scrollHeight > view.height && (top >= view.top || bottom <= view.top);
}

function conversationOf(answer: HTMLElement): HTMLElement | null {
  return answer.closest<HTMLElement>(".conversation");
}
