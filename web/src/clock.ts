import { signal } from "@preact/signals";

/** The clock difference, in seconds, that network latency cannot explain. */
const TOLERATED = 2;
let ahead = 0;

/** The service's time in Unix seconds, updated every second while it is used. */
export const now = signal(0);

function look(): void {
  if (!document.hidden) now.value = Date.now() / 1_000 - ahead;
}

/** Compute the clock difference to the service from the `Date` of a response. */
export function agreeWith(date: string | null): void {
  const difference = Date.now() / 1_000 - Date.parse(date ?? "") / 1_000;
  ahead = Math.abs(difference) > TOLERATED ? difference : 0;
}

let watchers = 0;
let timer: ReturnType<typeof setInterval> | undefined;

/** Keep `now` updated until the returned function is called; all users share one timer. */
export function watchClock(): () => void {
  look();
  if ((watchers += 1) === 1) timer = setInterval(look, 1_000);
  return () => {
    if ((watchers -= 1) === 0) clearInterval(timer);
  };
}

/** A short form of a duration, such as `0.4 s`, `12 s` or `3:05`. */
export function lasted(seconds: number): string {
  if (seconds < 9.95) return `${Math.max(0, seconds).toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const [hours, minutes, rest] = [Math.floor(whole / 3_600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (number: number) => String(number).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}
