import { useRef, useState } from "preact/hooks";

interface Given {
  act: () => Promise<unknown>;
  /** What it does, where its name does not say it. */
  title?: string;
  children: string;
}

/** A button that is disabled until its action has finished. */
export function ActionButton({ act, title, children }: Given) {
  const [isUnderWay, once] = useOnce();
  return (
    <button title={title} disabled={isUnderWay} onClick={() => void once(act)}>{children}</button>
  );
}

/** Runs one action at a time; returns whether one is running, and a function that starts one. */
export function useOnce(): [boolean, (work: () => Promise<unknown>) => Promise<void>] {
  const [isUnderWay, setUnderWay] = useState(false);
  // A second click may arrive before the page is rendered after the first one.
  const holds = useRef(false);
  const once = async (work: () => Promise<unknown>) => {
    if (holds.current) return;
    holds.current = true;
    setUnderWay(true);
    await work();
    holds.current = false;
    setUnderWay(false);
  };
  return [isUnderWay, once];
}
