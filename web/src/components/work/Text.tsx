import { useEffect, useRef, useState } from "preact/hooks";
import { type Run, runsOf } from "../../ansi";
import { highlight } from "../../highlight";
import { words } from "../../words";
import { Copy } from "./Copy";

/** As much of a text as is shown at once, and when all of it is wanted, in characters. */
export const SHOWN = 20_000;
const MOST = 1_000_000;

interface Given {
  /** What it is, for those who do not see where it stands. */
  name: string;
  text: string;
  kind?: string;
  /** The language of a programming text, as the highlighter knows it. */
  language?: string;
}

/** A text as it is, to be scrolled, copied, and shown whole when it is long. */
export function Text({ name, text, kind = "", language = "" }: Given) {
  const [isWhole, setWhole] = useState(false);
  const shown = text.slice(0, isWhole ? MOST : SHOWN);
  return (
    <div class={`text ${kind}`}>
      <pre tabIndex={0} role="group" aria-label={name}>
        {language ? <Programme key={shown} text={shown} language={language} /> : <Coloured text={shown} />}
        {shown.length < text.length && "…"}
      </pre>
      <Copy text={text} />
      {!isWhole && text.length > SHOWN && (
        <button class="whole" onClick={() => setWhole(true)}>
          {words.showAll} ({text.length.toLocaleString()})
        </button>
      )}
    </div>
  );
}

/** A programming text, coloured once that is at hand; another text needs another element. */
function Programme({ text, language }: { text: string; language: string }) {
  const code = useRef<HTMLElement>(null);
  useEffect(() => void highlight(code.current!.closest(".text")!), []);
  return (
    <code ref={code} class={`language-${language}`}>
      {text}
    </code>
  );
}

/** What a program printed, in its colours. */
export function Coloured({ text }: { text: string }) {
  return <>{runsOf(text).map(shaped)}</>;
}

function shaped({ text, classes, colour, ground }: Run, index: number) {
  if (!classes && !colour && !ground) return text;
  return (
    <span key={index} class={classes} style={{ color: colour, backgroundColor: ground }}>
      {text}
    </span>
  );
}
