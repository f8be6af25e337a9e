import { afterEach, describe, expect, it, vi } from "vitest";
import { agreeWith, now, watchClock } from "../src/clock";
import { yieldToBrowser, createPacer } from "../src/scheduling";

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe("work in slices", () => {
  it("goes on at once until its time is up, then lets the browser come in", async () => {
    const clock = vi.spyOn(performance, "now").mockReturnValue(0);
    const pace = createPacer();
    clock.mockReturnValue(7);
    expect(pace()).toBe(undefined);
    clock.mockReturnValue(8);
    const pause = pace();
    expect(pause).toBeInstanceOf(Promise);
    await pause;
    expect(pace()).toBe(undefined);
    clock.mockRestore();
  });

  it("comes back where the browser has no scheduler", async () => {
    vi.stubGlobal("scheduler", undefined);
    await yieldToBrowser();
  });
});

describe("the clock", () => {
  it("goes on once a second while somebody watches, by the service's time", () => {
    vi.useFakeTimers({ now: 1_000_000_000_000 });
    vi.stubGlobal("document", { hidden: false });
    agreeWith(new Date(1_000_000_000_000 - 60_000).toUTCString());
    const stop = watchClock();
    const stopToo = watchClock();
    expect([now.value, vi.getTimerCount()]).toEqual([999_999_940, 1]);
    vi.advanceTimersByTime(3_000);
    expect(now.value).toBe(999_999_943);
    vi.stubGlobal("document", { hidden: true });
    vi.advanceTimersByTime(3_000);
    expect(now.value).toBe(999_999_943);
    stop();
    stopToo();
    expect(vi.getTimerCount()).toBe(0);
    agreeWith(null);
  });
});
