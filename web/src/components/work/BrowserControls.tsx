import type { ComponentChildren } from "preact";
import { texts } from "../../texts";

interface Shown {
  at: number;
  last: number;
  /** The step as text, for screen readers. */
  step: string;
  go: (to: number) => void;
  children: ComponentChildren;
}

/** Two buttons and a slider to select a step. */
export function BrowserControls({ at, last, step, go, children }: Shown) {
  return (
    <div class="controls">
      <button aria-label={texts.recording.previous} aria-disabled={at <= 0} onClick={() => go(at - 1)}>
        ‹
      </button>
      <input
        type="range"
        min={0}
        max={last}
        value={at}
        aria-label={texts.recording.slider}
        aria-valuetext={step}
        onInput={(e) => go(e.currentTarget.valueAsNumber)}
      />
      <button aria-label={texts.recording.next} aria-disabled={at >= last} onClick={() => go(at + 1)}>
        ›
      </button>
      {children}
    </div>
  );
}
