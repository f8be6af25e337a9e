import { useRef } from "preact/hooks";
import { earlier, openId, openRuns, showEarlier, tick } from "../../conversation";
import { words } from "../../words";
import { RunView } from "./RunView";
import { useFollowing } from "./following";

export function Conversation() {
  const place = useRef<HTMLDivElement>(null);
  void tick.value;
  const runs = openRuns();
  // Who has just asked wants to see the answer.
  const note = useFollowing(place, runs.length);
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
