import { useState } from "preact/hooks";
import { pageOf } from "../../../results";
import type { Call } from "../../../parts";
import { texts } from "../../../texts";
import { Markdown } from "../../chat/Markdown";
import { Text } from "../Text";
import { Answer } from "./Answer";

/** A page that was read: its address, and its text when expanded. */
export function PageCall({ call }: { call: Call }) {
  const [isOpen, setOpen] = useState(false);
  if (call.result === null) return <Text name={texts.argumentsOf} text={String(call.input["url"] ?? "")} />;
  const page = pageOf(call.result);
  if (!page) return <Answer call={call} />;
  return (
    <>
      <p>
        {page.cite !== null && <span class="cite">[{page.cite}]</span>}{" "}
        <a href={page.url} target="_blank" rel="noopener noreferrer">{page.title || page.url}</a>{" "}
        <span class="who">{new URL(page.url).hostname}</span>
      </p>
      <details class="read" open={isOpen} onToggle={(e) => setOpen(e.currentTarget.open)}>
        <summary>
          {texts.whatItSays} <span class="who">({page.text.length.toLocaleString()})</span>
        </summary>
        {isOpen && <Markdown text={page.text} isWritten />}
      </details>
    </>
  );
}
