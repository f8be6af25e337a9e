import { useRef } from "preact/hooks";
import { asked, askedBefore, besideRun, earlier, isGone, openId, openRuns, showEarlier, tick } from "../../conversation";
import { texts } from "../../texts";
import { Hello } from "./Hello";
import { RunView } from "./RunView";
import { useFollowing, useHeld } from "./autoscroll";

export function Conversation() {
  const place = useRef<HTMLDivElement>(null);
  void tick.value;
  const runs = openRuns();
  const beside = besideRun();
  // The start page begins at its top.
  const note = useFollowing(place, runs.length > 0 && (asked.value || true), runs.at(-1));
  useHeld(place, runs[0]?.runId);
  return (
    <div class="conversation" ref={place} onScroll={note} tabIndex={0} role="log" aria-live="off" aria-label={texts.conversation}>
      <div class="column">
        {isGone.value && (
          <section class="hello">
            <h1>{texts.gone}</h1>
            <p>
              <a href="#">{texts.newThread}</a>
            </p>
          </section>
        )}
        {openId.value === null && runs.length === 0 && <Hello />}
        {earlier.value > 0 && <button onClick={() => void showEarlier()}>{texts.earlier}</button>}
        {runs.map((run, at) => (
          <RunView key={run.runId} run={run} version={run.version} isBeside={run === beside} since={askedBefore(at)} />
        ))}
      </div>
    </div>
  );
}
