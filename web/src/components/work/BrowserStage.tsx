import { useEffect, useMemo, useState } from "preact/hooks";
import type { Mark, Tab } from "../../events";
import type { Frame, BrowserState } from "../../recording";
import { Pictures } from "../../pictures";
import { labelled, texts } from "../../texts";
import { useService } from "../service";

interface Shown {
  frame: Frame | null;
  place: BrowserState | null;
  /** The picture to show where the frame has none. */
  newest: string | null;
  /** Whether this is the newest step of a browser at work. */
  isActing: boolean;
  caption: string;
}

/** A browser window: address, tabs, and screenshot with the target of the action marked. */
export function BrowserStage({ frame, place, newest, isActing, caption: doing }: Shown) {
  const picture = frame?.picture ?? newest;
  const shown = usePicture(picture);
  const title = place?.title || place?.url || texts.recording.blank;
  return (
    <figure class="window">
      <figcaption class="where">
        <span class="title">{title}</span>
        {place?.url && (
          <span class="address">
            <span class="unseen">{labelled(texts.recording.address, "")}</span>
            <bdi>{place.url}</bdi>
          </span>
        )}
      </figcaption>
      {place?.tabs && place.tabs.length > 1 && <Tabs tabs={place.tabs} />}
      {picture === null || shown === null ? (
        <p class="nothing">{place ? (picture === null ? texts.recording.noPicture : title) : texts.recording.blank}</p>
      ) : (
        // Until the next picture is loaded, the previous one is shown without a mark.
        <div class="stage" aria-busy={shown.address !== picture}>
          <img src={shown.source} alt={`${title}: ${doing}`} />
          {frame?.mark && shown.address === picture && <Box mark={frame.mark} isActing={isActing && frame.state === "acting"} />}
        </div>
      )}
    </figure>
  );
}

function Tabs({ tabs }: { tabs: readonly Tab[] }) {
  return (
    <ul class="tabs" aria-label={texts.recording.tabs}>
      {tabs.map((tab) => (
        <li key={tab.tab_id} aria-current={tab.is_current}>{tab.title || tab.url}</li>
      ))}
    </ul>
  );
}

function Box({ mark, isActing }: { mark: Mark; isActing: boolean }) {
  const share = (part: number) => `${part * 100}%`;
  const { x, y, width, height } = mark;
  const place = { left: share(x), top: share(y), width: share(width), height: share(height) };
  return <span class={`mark ${isActing ? "acting" : ""}`} style={place} aria-hidden="true" />;
}

interface Source {
  address: string;
  source: string;
}

/** The picture of a URL, or the previous one until it is loaded; outdated ones are dropped. Null for none. */
function usePicture(address: string | null): Source | null {
  const { ask } = useService();
  const pictures = useMemo(() => new Pictures(async (one) => (await ask(one)).blob()), [ask]);
  const [shown, show] = useState<Source | null>(null);
  useEffect(() => () => pictures.clear(), [pictures]);
  useEffect(() => {
    if (address === null) return;
    let isWanted = true;
    pictures.get(address).then(
      (source) => isWanted && show({ address, source }),
      () => isWanted && show(null),
    );
    return () => void (isWanted = false);
  }, [pictures, address]);
  return shown;
}
