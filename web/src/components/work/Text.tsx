import { useEffect, useRef, useState } from "preact/hooks";
import { type Run, runsOf } from "../../ansi";
import { highlight } from "../../highlight";
import { texts } from "../../texts";
import { Copy } from "./Copy";

/** The length of a text that is shown first, and after expanding, in characters. */
export const SHOWN = 20_000;
const MOST = 1_000_000;

interface Given {
  /** Its label for screen readers. */
  name: string;
  text: string;
  kind?: string;
  /** The highlighter's name of the language. */
  language?: string;
}

/** A plain text that can be scrolled, copied and expanded. */
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
          {texts.showAll} ({text.length.toLocaleString()})
        </button>
      )}
    </div>
  );
}

/** Code, highlighted when the highlighter is loaded. Needs a new `key` for another text. */
function Programme({ text, language }: { text: string; language: string }) {
  const code = useRef<HTMLElement>(null);
  useEffect(() => void highlight(code.current!.closest(".text")!), []);
  return (
    <code ref={code} class={`language-${language}`}>
      {text}
    </code>
  );
}

/** The output of a program with its colours. */
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
