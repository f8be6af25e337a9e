import { linksOf } from "../../../results";
import type { Call } from "../../../parts";
import { texts } from "../../../texts";
import { Answer } from "./Answer";

/** The maximum length of a hit's text, in characters. */
const SNIPPET = 280;

/** The hits of a search: address, a short text, and the number among the sources. */
export function SearchCall({ call }: { call: Call }) {
  if (call.result === null) return null;
  const links = linksOf(call.result);
  if (links.length === 0) return <Answer call={call} />;
  return (
    <ol class="found" aria-label={texts.result}>
      {links.map(({ title, url, content, cite }, index) => (
        <li key={index}>
          <p>
            {cite !== null && <span class="cite">[{cite}]</span>}{" "}
            <a href={url} target="_blank" rel="noopener noreferrer">{title || url}</a>{" "}
            <span class="who">{new URL(url).hostname}</span>
          </p>
          {content && <p class="snippet">{content.slice(0, SNIPPET)}{content.length > SNIPPET && "…"}</p>}
        </li>
      ))}
    </ol>
  );
}
