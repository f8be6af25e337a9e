import type { Source } from "../../references";
import { texts } from "../../texts";

/** Sources that the run has read but the report does not cite, collapsed. */
export function AlsoRead({ sources }: { sources: readonly Source[] }) {
  if (sources.length === 0) return null;
  return (
    <details class="also">
      <summary>{`${texts.alsoRead} (${sources.length})`}</summary>
      <SourceList sources={sources} />
    </details>
  );
}

/** Sources with the numbers that reports cite. */
export function SourceList({ sources }: { sources: readonly Source[] }) {
  return (
    <ul class="sources">
      {sources.map((one) => (
        <li key={one.number} class="source">
          <span class="number">[{one.number}]</span> <SourceTitle {...one} />
        </li>
      ))}
    </ul>
  );
}

/** The title of a source, which leads to it, and its host. */
function SourceTitle({ url, title }: Source) {
  if (!/^https?:/i.test(url) || !URL.canParse(url)) return <>{title || url}</>;
  return (
    <>
      <a href={url} target="_blank" rel="noopener noreferrer">
        {title || url}
      </a>{" "}
      <span class="who">{new URL(url).hostname.replace(/^www\./, "")}</span>
    </>
  );
}
