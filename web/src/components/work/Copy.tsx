import { useEffect, useState } from "preact/hooks";
import { COPIED_MS, copyText } from "../../clipboard";
import { texts } from "../../texts";

interface Given {
  text: string;
  /** What the button does, for screen readers, where several texts stand together. */
  name?: string;
}

/** A button that puts a text on the clipboard and says so. */
export function Copy({ text, name = "" }: Given) {
  const [state, setState] = useState<"" | "copied" | "failed">("");
  useEffect(() => {
    if (!state) return;
    const timer = setTimeout(() => setState(""), COPIED_MS);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async () => setState((await copyText(text)) ? "copied" : "failed");
  const label = { "": texts.copy, copied: texts.copied, failed: texts.notCopied }[state];
  return (
    <button class="copy" aria-label={name && !state ? name : undefined} onClick={() => void copy()}>
      {label}
    </button>
  );
}
