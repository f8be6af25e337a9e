import { useLayoutEffect, useRef } from "preact/hooks";
import { asked, earlier, isGone, openId, openRuns, showEarlier, tick } from "../../conversation";
import { texts } from "../../texts";
import { Hello } from "./Hello";
import { RunView } from "./RunView";
import { useFollowing, useHeld } from "./autoscroll";

export function Conversation() {
  const place = useRef<HTMLDivElement>(null);
  void tick.value;
  const runs = openRuns();
  // Scroll to the end after opening the conversation and after asking.
  const note = useFollowing(place, asked.value || true);
  useHeld(place, runs[0]?.runId);
  const hold = useFocusKept(place);
  return (
    <div class="conversation" ref={place} onScroll={note} onFocusIn={hold} tabIndex={0} role="log" aria-live="off" aria-label={texts.conversation}>
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
        {runs.map((run) => (
          <RunView key={run.runId} run={run} version={run.version} />
        ))}
      </div>
    </div>
  );
}

/** Keep the focus here when the focused element is removed, such as an answered form. Returns a focus handler. */
function useFocusKept(place: { current: HTMLElement | null }): (event: FocusEvent) => void {
  const held = useRef<EventTarget | null>(null);
  useLayoutEffect(() => {
    const isGone = held.current instanceof Node && !held.current.isConnected;
    if (isGone && document.activeElement === document.body) place.current?.focus({ preventScroll: true });
    if (isGone) held.current = null;
  });
  return (event) => (held.current = event.target);
}
