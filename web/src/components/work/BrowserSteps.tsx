import type { BrowserStep } from "../../events";
import { texts } from "../../texts";

const SHOWN_OBSERVATION = 1_000;

/** The browser's steps in a call. */
export function BrowserSteps({ steps }: { steps: readonly BrowserStep[] }) {
  return (
    <ol class="steps-done" aria-label={texts.browser}>
      {steps.map(({ number, state, thought, action, observation, seconds }) => (
        <li key={number}>
          <p>
            {action && <code>{`${action.name} ${JSON.stringify(action.parameters)}`}</code>}{" "}
            <span class="who">{seconds > 0 ? `${seconds.toFixed(1)} s` : (texts.status[state] ?? state)}</span>
          </p>
          {thought && <p class="thought">{thought}</p>}
          {observation && <p class="who">{observation.slice(0, SHOWN_OBSERVATION)}</p>}
        </li>
      ))}
    </ol>
  );
}
