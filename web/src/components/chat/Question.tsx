import { useState } from "preact/hooks";
import { texts } from "../../texts";

/** A longer question, in characters or lines, is folded. */
const LONG = 1_500;
const LONG_LINES = 20;

export function Question({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(false);
  const start = text.split("\n", LONG_LINES).join("\n").slice(0, LONG);
  if (isWhole || start.length === text.length) return <div class="question">{text}</div>;
  return (
    <div class="question">
      {start}… <button onClick={() => setWhole(true)}>{texts.showAll}</button>
    </div>
  );
}
