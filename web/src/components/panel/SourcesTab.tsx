import type { Source } from "../../references";
import type { RunModel } from "../../run";
import { texts } from "../../texts";
import { useFetched } from "../fetched";
import { SourceList } from "../report/AlsoRead";

/** An address that could not be read, as in `GET /api/runs/{run_id}/sources`. */
interface UnreadPage {
  url: string;
  reason: string;
}

interface Found {
  sources: Source[];
  unread: UnreadPage[];
}

/** What the run has read and what its searches found, by the numbers that the report cites, and what could not be read. */
export function SourcesTab({ run }: { run: RunModel; version: number }) {
  const { data, hasFailed } = useFetched<Found>(`/api/runs/${encodeURIComponent(run.runId)}/sources`, `${run.readings} ${run.status}`);
  if (hasFailed) return <p class="faint">{texts.sourcesUnread}</p>;
  if (!data) return null;
  if (data.sources.length + data.unread.length === 0) return <p class="faint">{texts.noSources}</p>;
  const pages = data.sources.filter((one) => one.kind === "page");
  const hits = data.sources.filter((one) => one.kind === "result");
  return (
    <>
      <Sources name={texts.readPages} sources={pages} />
      <Sources name={texts.foundPages} sources={hits} />
      {data.unread.length > 0 && (
        <section>
          <h3>{texts.unreadPages}</h3>
          <ul class="sources">
            {data.unread.map(({ url, reason }) => (
              <li key={url} class="source">
                {url} <span class="who">{reason}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

function Sources({ name, sources }: { name: string; sources: readonly Source[] }) {
  if (sources.length === 0) return null;
  return (
    <section>
      <h3>{`${name} (${sources.length.toLocaleString()})`}</h3>
      <SourceList sources={sources} />
    </section>
  );
}
