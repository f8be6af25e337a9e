/** How long a script may block the browser, in milliseconds. */
const SLICE_MS = 8;

interface Scheduler {
  yield?: () => Promise<void>;
}

/** Work in slices: `await pace()` between small pieces yields to the browser when necessary. */
export function createPacer(): () => Promise<void> | undefined {
  let begun = performance.now();
  return () => {
    if (performance.now() - begun < SLICE_MS) return undefined;
    return yieldToBrowser().then(() => void (begun = performance.now()));
  };
}

/** Yield to the browser. Unlike timers, this is not throttled in hidden tabs. */
export function yieldToBrowser(): Promise<void> {
  const { scheduler } = globalThis as { scheduler?: Scheduler };
  if (scheduler?.yield) return scheduler.yield();
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => (port1.close(), resolve());
    port2.postMessage(null);
  });
}
