import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { earlier, openId, openRuns, showEarlier, tick } from "../../conversation";
import { words } from "../../words";
import { RunView } from "./RunView";

/** How far from its end, in pixels, a reader still follows what is written. */
const NEAR_END = 80;

export function Conversation() {
  const place = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  void tick.value;
  const runs = openRuns();
  // Who has just asked wants to see the answer.
  useLayoutEffect(() => void (follows.current = true), [runs.length]);
  useLayoutEffect(() => {
    if (follows.current) place.current?.scrollTo({ top: place.current.scrollHeight });
  });
  useEffect(() => {
    const inner = place.current?.firstElementChild;
    if (!inner) return;
    // Markdown is laid out a moment after its run was shown.
    const watcher = new ResizeObserver(() => {
      if (follows.current) place.current?.scrollTo({ top: place.current.scrollHeight });
    });
    watcher.observe(inner);
    return () => watcher.disconnect();
  }, []);
  const note = () => {
    const { scrollHeight, scrollTop, clientHeight } = place.current!;
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR_END;
  };
  return (
    <div class="conversation" ref={place} onScroll={note} tabIndex={0} role="log" aria-live="off" aria-label={words.threads}>
      <div class="column">
        {openId.value === null && runs.length === 0 && (
          <section class="hello">
            <h1>{words.hello}</h1>
            <p>{words.hint}</p>
          </section>
        )}
        {earlier.value > 0 && <button onClick={() => void showEarlier()}>{words.earlier}</button>}
        {runs.map((run) => (
          <RunView key={run.runId} run={run} version={run.version} />
        ))}
      </div>
    </div>
  );
}
