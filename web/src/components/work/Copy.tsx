import { useEffect, useState } from "preact/hooks";
import { texts } from "../../texts";

const SHOWN_MS = 2_000;

/** A button that puts a text on the clipboard and says so. */
export function Copy({ text }: { text: string }) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = () => navigator.clipboard.writeText(text).then(() => setCopied(true), () => undefined);
  return (
    <button class="copy" onClick={() => void copy()}>
      {isCopied ? texts.copied : texts.copy}
    </button>
  );
}
