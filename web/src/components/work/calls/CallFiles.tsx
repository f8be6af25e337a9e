import type { ArtifactLink } from "../../../events";
import { sizeOf } from "../../../uploads";
import { Picture } from "../Picture";

const PICTURE = /^image\/(png|jpeg|gif|webp)$/;

/** The files and figures of a call; `Files` below the answer offers them for download. */
export function CallFiles({ files }: { files: readonly ArtifactLink[] }) {
  if (files.length === 0) return null;
  return (
    <ul class="made">
      {files.map(({ artifact_id, name, media_type, size, url }) => (
        <li key={artifact_id}>
          {PICTURE.test(media_type) && <Picture url={url} alt={name} />}
          {name} <span class="who">{sizeOf(size)}</span>
        </li>
      ))}
    </ul>
  );
}
