import { useEffect } from "preact/hooks";
import { trouble } from "../conversation";
import { texts } from "../texts";

/** How long a refusal stays, per character and at least, in milliseconds: long enough to be read twice. */
const MS_PER_CHARACTER = 150;
const MIN_MS = 10_000;

/** The error of the user's last action, until it is closed, another action begins, or its time is over. */
export function Trouble() {
  const text = trouble.value;
  useEffect(() => {
    if (!text) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    // Nobody reads it in a hidden tab.
    const count = () => {
      clearTimeout(timer);
      if (!document.hidden) timer = setTimeout(() => (trouble.value = ""), Math.max(MIN_MS, text.length * MS_PER_CHARACTER));
    };
    count();
    document.addEventListener("visibilitychange", count);
    return () => (clearTimeout(timer), document.removeEventListener("visibilitychange", count));
  }, [text]);
  if (!text) return null;
  return (
    <div class="notice bad trouble">
      <p role="alert">{text}</p>
      <button type="button" aria-label={texts.closeTrouble} title={texts.closeTrouble} onClick={() => (trouble.value = "")}>
        <span aria-hidden="true">×</span>
      </button>
    </div>
  );
}
