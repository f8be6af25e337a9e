import type { BrowserStep, RunEvent } from "./events";

/** Where the browser was when an agent looked at it. */
export type Place = Extract<RunEvent, { type: "browser_state" }>;

/** A step in the browser, as it was told last, with what its action was decided on. */
export interface Frame extends BrowserStep {
  place: Place | null;
  /** The address of its picture; null where none was taken. */
  picture: string | null;
}

/** Of a run with more steps the first ones are left out. */
export const MOST_FRAMES = 500;

/** What the browsers of a run showed, step by step. Each event is taken in constant time. */
export class Film {
  readonly frames: Frame[] = [];
  /** Where the browser is now. */
  place: Place | null = null;
  /** How many frames were left out. */
  leftOut = 0;
  #byStep = new Map<string, Frame>();

  get isThere(): boolean {
    return this.place !== null || this.frames.length > 0;
  }

  get newest(): Frame | null {
    return this.frames.at(-1) ?? null;
  }

  /** Take where the browser is: who thinks right now looks at it. */
  look(place: Place): void {
    this.place = place;
    const { newest } = this;
    if (newest?.state === "thinking") Object.assign(newest, { place, picture: place.screenshot });
  }

  step(step: Extract<RunEvent, { type: "browser_step" }>): void {
    const key = `${step.tool_call_id}/${step.number}`;
    const known = this.#byStep.get(key);
    if (!known) this.#add(key, step);
    else Object.assign(known, step, sceneOf(known, step));
  }

  #add(key: string, step: BrowserStep): void {
    const { place } = this;
    const begun = { ...step, place, picture: place?.screenshot ?? null };
    // An answer may have several actions: only the first is thought about.
    const frame = step.state === "thinking" ? begun : { ...begun, ...sceneOf({ ...begun, state: "thinking" }, step) };
    this.frames.push(frame);
    this.#byStep.set(key, frame);
    if (this.frames.length <= MOST_FRAMES) return;
    this.frames.shift();
    this.leftOut += 1;
    this.#byStep.delete(this.#byStep.keys().next().value!);
  }
}

/** What of a frame's scene stays: what is told again after a pause has lost its picture and its mark. */
function sceneOf(known: Frame, step: BrowserStep): Pick<Frame, "picture" | "mark" | "element"> {
  const { mark = null, element = null, screenshot } = step;
  if (known.state === "thinking") return { mark, element, picture: screenshot === undefined ? known.picture : screenshot };
  return { mark: mark ?? known.mark ?? null, element: element ?? known.element ?? null, picture: screenshot ?? known.picture };
}
