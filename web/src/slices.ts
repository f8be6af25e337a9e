/** How long, in milliseconds, a program may keep a browser from showing and hearing anything. */
const SLICE_MS = 8;

interface Scheduler {
  yield?: () => Promise<void>;
}

/** Work in slices: `await pace()` between small pieces of it lets the browser come in when it is time. */
export function paced(): () => Promise<void> | undefined {
  let begun = performance.now();
  return () => {
    if (performance.now() - begun < SLICE_MS) return undefined;
    return breathe().then(() => void (begun = performance.now()));
  };
}

/** Come back once the browser has done what waits: unlike timers also soon in a tab that nobody sees. */
export function breathe(): Promise<void> {
  const { scheduler } = globalThis as { scheduler?: Scheduler };
  if (scheduler?.yield) return scheduler.yield();
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => (port1.close(), resolve());
    port2.postMessage(null);
  });
}
