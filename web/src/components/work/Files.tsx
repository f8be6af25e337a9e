import type { ArtifactLink } from "../../events";
import { save } from "../../download";
import { words } from "../../words";
import { useService } from "../service";
import { Picture } from "./Picture";

const PICTURE = /^image\/(png|jpeg|gif|webp)$/;

/** The files of a run; each is fetched with the API key and saved. */
export function Files({ artifacts }: { artifacts: ArtifactLink[] }) {
  const { ask, attempt, has } = useService();
  const pictures = artifacts.filter((one) => PICTURE.test(one.media_type));
  return (
    <section class="files" aria-label={words.openFiles}>
      {pictures.map((one) => (
        <Picture key={one.artifact_id} url={one.url} words={one.name} />
      ))}
      <ul>
        {artifacts.map((one) => (
          <li key={one.artifact_id}>
            <button disabled={!has(one.url)} onClick={() => void attempt(() => ask(one.url).then((answer) => save(answer, one.name)))}>
              <span aria-hidden="true">↓</span> {one.name} <span class="who">{sizeOf(one.size)}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function sizeOf(bytes: number): string {
  return bytes < 1_000 ? `${bytes} B` : bytes < 1_000_000 ? `${(bytes / 1e3).toFixed(1)} KB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
