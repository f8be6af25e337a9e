import { useEffect, useRef, useState } from "preact/hooks";
import { highlight } from "../../highlight";
import { type Hunk, diffLines, replaced } from "../../lineDiff";
import { texts } from "../../texts";
import { Copy } from "./Copy";
import { SHOWN } from "./Text";

const SIGNS: Record<Hunk["kind"], string> = { same: " ", gone: "−", come: "+" };

interface Given {
  old: string;
  now: string;
  language: string;
}

/** A change of a file line by line; until the code for it is loaded, the text before and the text after. */
export function LineDiff({ old, now, language }: Given) {
  const [hunks, setHunks] = useState<{ of: string; all: Hunk[] } | null>(null);
  const key = `${old}\0${now}`;
  const isShort = old.length + now.length <= SHOWN;
  useEffect(() => {
    let isWanted = isShort;
    if (isShort) void diffLines(old, now).then((all) => isWanted && setHunks({ of: key, all }), () => undefined);
    return () => void (isWanted = false);
  }, [key]);
  const shown = hunks?.of === key ? hunks.all : replaced(old.slice(0, SHOWN), now.slice(0, SHOWN));
  return (
    <div class="text diff" role="group" aria-label={texts.changed} tabIndex={0}>
      {shown.map((hunk, at) => (
        <HunkView key={`${at} ${hunk.kind} ${hunk.text}`} hunk={hunk} language={language} />
      ))}
      <Copy text={now} />
    </div>
  );
}

const labelOf = (kind: Hunk["kind"]) => ({ same: "", gone: texts.replaced, come: texts.written })[kind];

function HunkView({ hunk: { kind, text }, language }: { hunk: Hunk; language: string }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => void highlight(place.current!), []);
  const lines = text.replace(/\n$/, "");
  return (
    <div class={`hunk ${kind}`} ref={place}>
      {labelOf(kind) && <span class="unseen">{labelOf(kind)}: </span>}
      <pre class="signs" aria-hidden="true">{lines.split("\n").fill(SIGNS[kind]).join("\n")}</pre>
      <pre>{language ? <code class={`language-${language}`}>{lines}</code> : <code>{lines}</code>}</pre>
    </div>
  );
}
