import { computed, signal } from "@preact/signals";
import type { Clock } from "../components/service";
import { RunModel } from "../run";
import { paced } from "./pace";
import type { Shared } from "./shared";

/** Plays the events of a run into its model, and shows at first how the run ended. */
export class Player {
  /** How long a play takes, in milliseconds. */
  readonly length: number;
  /** Where the play is, in milliseconds. */
  readonly position = signal(0);
  readonly isPlaying = signal(false);
  readonly speed = signal(1);
  /** What the run's own clock says where the play is; 0 while nobody knows. */
  readonly clock: Clock = { now: computed(() => this.#now(this.position.value)), watch: () => () => undefined };
  run: RunModel;
  readonly #shared: Shared;
  readonly #times: number[];
  #next = 0;
  #newest = 0;
  #frame = 0;

  constructor(shared: Shared) {
    this.#shared = shared;
    this.#times = paced(shared.events);
    this.length = this.#times.at(-1) ?? 0;
    this.run = this.#afresh();
    this.seek(this.length);
  }

  /** Show the run as it was at a moment of the play. */
  seek(position: number): void {
    if (position < this.position.value) this.run = this.#afresh();
    while ((this.#times[this.#next] ?? Infinity) <= position) this.#tell();
    this.position.value = position;
  }

  /** Play on; from the beginning when the end was shown. */
  play(): void {
    if (this.position.value >= this.length) this.seek(0);
    this.isPlaying.value = true;
    let before = performance.now();
    const frame = (now: number) => {
      // The time of a frame is when it began: that of the first may be before the click that started the play.
      const passed = Math.max(now - before, 0);
      this.seek(Math.min(this.position.value + passed * this.speed.value, this.length));
      before = now;
      if (this.position.value < this.length) this.#frame = requestAnimationFrame(frame);
      else this.isPlaying.value = false;
    };
    this.#frame = requestAnimationFrame(frame);
  }

  rest(): void {
    cancelAnimationFrame(this.#frame);
    this.isPlaying.value = false;
  }

  toEnd(): void {
    this.rest();
    this.seek(this.length);
  }

  #now(position: number): number {
    return this.#newest && this.#newest + (position - (this.#times[this.#next - 1] ?? 0)) / 1_000;
  }

  #afresh(): RunModel {
    this.#next = 0;
    this.#newest = 0;
    return new RunModel(this.#shared.runId, this.#shared.question);
  }

  #tell(): void {
    const event = this.#shared.events[this.#next]!;
    this.#next += 1;
    this.#newest = Math.max(this.#newest, event.at ?? 0);
    try {
      this.run.apply(event);
    } catch (error) {
      // A file may be of another version, or cut: one event that cannot be told is no reason to tell no other.
      console.warn(error);
    }
  }
}
