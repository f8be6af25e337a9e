import { computed, signal } from "@preact/signals";
import type { Clock } from "../components/service";
import type { RunEvent } from "../events";
import { RunModel } from "../run";
import { playbackTimes } from "./playbackTimes";
import type { Shared } from "./shared";

/** Replays the events of a run into its model; initially it shows the end of the run. */
export class Player {
  /** The duration of the replay in milliseconds. */
  readonly length: number;
  /** The position of the replay in milliseconds. */
  readonly position = signal(0);
  readonly isPlaying = signal(false);
  readonly speed = signal(1);
  /** The run's time at the position of the replay; 0 if unknown. */
  readonly clock: Clock = { now: computed(() => this.#now(this.position.value)), watch: () => () => undefined };
  run: RunModel;
  /** Whether a moment was asked for by the number of its event. */
  wasSought = false;
  /** The events that could not be shown, as in a file of another version. */
  readonly unreadable = new Set<RunEvent>();
  readonly #shared: Shared;
  readonly #times: number[];
  #next = 0;
  #newest = 0;
  #frame = 0;

  constructor(shared: Shared) {
    this.#shared = shared;
    this.#times = playbackTimes(shared.events);
    this.length = this.#times.at(-1) ?? 0;
    this.run = this.#afresh();
    this.seek(this.length);
  }

  /** Show the run at a position of the replay. */
  seek(position: number): void {
    if (position < this.position.value) this.run = this.#afresh();
    while ((this.#times[this.#next] ?? Infinity) <= position) this.#tell();
    this.position.value = position;
  }

  /** Show the run as it was with the event of this number. */
  seekEvent(id: number): void {
    this.wasSought = true;
    this.rest();
    this.seek(this.#times[this.#shared.events.findLastIndex((one) => (one.id ?? Infinity) <= id)] ?? 0);
  }

  /** The number of the newest event that is shown; 0 for none. */
  get event(): number {
    return this.#shared.events[this.#next - 1]?.id ?? 0;
  }

  /** Continue the replay; from the beginning if it is at its end. */
  play(): void {
    if (this.position.value >= this.length) this.seek(0);
    this.isPlaying.value = true;
    let before = performance.now();
    const frame = (now: number) => {
      // The time of a frame is its start, which may be before the click that started the replay.
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
      // A file may be of another version or truncated; an invalid event must not stop the others.
      this.unreadable.add(event);
      console.warn(error);
    }
  }
}
