import type { BrowserStep, RunEvent } from "./events";

/** The state of the browser when an agent observed it. */
export type BrowserState = Extract<RunEvent, { type: "browser_state" }>;

/** The newest event of a browser step, with the page on which its action was decided. */
export interface Frame extends BrowserStep {
  place: BrowserState | null;
  /** The URL of its screenshot; null if there is none. */
  picture: string | null;
}

/** In a run with more steps, the first ones are dropped. */
export const MAX_FRAMES = 500;

/** The recording of a run's browsers, step by step. Each event is processed in constant time. */
export class Recording {
  readonly frames: Frame[] = [];
  /** The present state of the browser. */
  place: BrowserState | null = null;
  /** The URL of the newest picture; null before the first. */
  picture: string | null = null;
  /** The number of dropped frames. */
  leftOut = 0;
  #byStep = new Map<string, Frame>();

  get isThere(): boolean {
    return this.place !== null || this.frames.length > 0;
  }

  get newest(): Frame | null {
    return this.frames.at(-1) ?? null;
  }

  /** Record the state of the browser for the step that is thinking now. */
  look(place: BrowserState): void {
    this.place = place;
    const { newest } = this;
    this.picture = place.screenshot ?? this.picture;
    if (newest?.state === "thinking") Object.assign(newest, { place, picture: place.screenshot });
  }

  step(step: Extract<RunEvent, { type: "browser_step" }>): void {
    this.picture = step.screenshot ?? this.picture;
    const key = `${step.tool_call_id}/${step.number}`;
    const known = this.#byStep.get(key);
    if (!known) this.#add(key, step);
    else Object.assign(known, step, sceneOf(known, step));
  }

  #add(key: string, step: BrowserStep): void {
    const { place } = this;
    const begun = { ...step, place, picture: place?.screenshot ?? null };
    // A model answer may have several actions; only the first has a thought.
    const frame = step.state === "thinking" ? begun : { ...begun, ...sceneOf({ ...begun, state: "thinking" }, step) };
    this.frames.push(frame);
    this.#byStep.set(key, frame);
    if (this.frames.length <= MAX_FRAMES) return;
    this.frames.shift();
    this.leftOut += 1;
    this.#byStep.delete(this.#byStep.keys().next().value!);
  }
}

/** Keep the picture and mark of a frame: an event that is repeated after a pause lacks them. */
function sceneOf(known: Frame, step: BrowserStep): Pick<Frame, "picture" | "mark" | "element"> {
  const { mark = null, element = null, screenshot } = step;
  if (known.state === "thinking") return { mark, element, picture: screenshot === undefined ? known.picture : screenshot };
  return { mark: mark ?? known.mark ?? null, element: element ?? known.element ?? null, picture: screenshot ?? known.picture };
}
