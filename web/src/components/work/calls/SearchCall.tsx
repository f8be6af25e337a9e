import { hitsOf } from "../../../results";
import type { Call } from "../../../parts";
import { texts } from "../../../texts";
import { Answer } from "./Answer";

/** The maximum length of a hit's text, in characters. */
const SNIPPET = 280;

/** The hits of a search: address, a short text, and the number among the sources. */
export function SearchCall({ call }: { call: Call }) {
  if (call.result === null) return null;
  const hits = hitsOf(call.result);
  if (hits.length === 0) return <Answer call={call} />;
  return (
    <ol class="found" aria-label={texts.result}>
      {hits.map(({ title, url, content, cite }, index) => (
        <li key={index}>
          <p>
            {cite !== null && <span class="cite">[{cite}]</span>}{" "}
            {url ? (
              <>
                <a href={url} target="_blank" rel="noopener noreferrer">{title || url}</a> <span class="who">{new URL(url).hostname}</span>
              </>
            ) : (
              title
            )}
          </p>
          {content && <p class="snippet">{content.slice(0, SNIPPET)}{content.length > SNIPPET && "…"}</p>}
        </li>
      ))}
    </ol>
  );
}
