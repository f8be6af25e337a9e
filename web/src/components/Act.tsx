import { useRef, useState } from "preact/hooks";

interface Given {
  act: () => Promise<unknown>;
  children: string;
}

/** A button that takes nothing more until what it began is done. */
export function Act({ act, children }: Given) {
  const [isUnderWay, once] = useOnce();
  return (
    <button disabled={isUnderWay} onClick={() => void once(act)}>{children}</button>
  );
}

/** One thing at a time: whether one is under way, and what begins one if none is. */
export function useOnce(): [boolean, (work: () => Promise<unknown>) => Promise<void>] {
  const [isUnderWay, setUnderWay] = useState(false);
  // A second click may come before the page has drawn what the first one did.
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
