import { useEffect, useState } from "preact/hooks";
import type { ArtifactLink } from "../../events";
import { save } from "../../download";
import { texts } from "../../texts";
import { sizeOf } from "../../uploads";
import { useService } from "../service";
import { Picture } from "./Picture";

const PICTURE = /^image\/(png|jpeg|gif|webp)$/;

/** The files of a run; each, or all of its conversation, is fetched with the API key and saved. */
export function Files({ artifacts, threadId }: { artifacts: ArtifactLink[]; threadId: string }) {
  const { ask, attempt, has } = useService();
  const all = `/api/threads/${encodeURIComponent(threadId)}/files.zip`;
  const pictures = artifacts.filter((one) => PICTURE.test(one.media_type));
  return (
    <section class="files" aria-label={texts.openFiles}>
      {pictures.map((one) => (
        <Picture key={one.artifact_id} url={one.url} alt={one.name} />
      ))}
      <ul>
        {artifacts.map((one) => (
          <li key={one.artifact_id}>
            <button disabled={!has(one.url)} onClick={() => void attempt(() => ask(one.url).then((answer) => save(answer, one.name)))}>
              <span aria-hidden="true">↓</span> {one.name} <span class="who">{sizeOf(one.size)}</span>
            </button>
          </li>
        ))}
        {threadId && has(all) && (
          <li>
            <button title={texts.allFilesHint} onClick={() => void attempt(() => ask(all).then((answer) => save(answer, "files.zip")))}>
              <span aria-hidden="true">↓</span> {texts.allFiles} <span class="who">ZIP</span>
            </button>
          </li>
        )}
      </ul>
    </section>
  );
}

/** A file of the workspace, as in `GET /api/threads/{thread_id}/files`. */
interface ThreadFile {
  path: string;
  size: number;
  uploaded: boolean;
  url: string;
}

const MOST_FILES = 20;

/** The user's files of a conversation, below their folders if there are many. */
export function UserFiles({ threadId }: { threadId: string }) {
  const { ask, has } = useService();
  const [files, setFiles] = useState<ThreadFile[]>([]);
  const path = `/api/threads/${threadId}/files`;
  useEffect(() => {
    if (!has(path)) return;
    const read = async () => ((await (await ask(path)).json()) as { files: ThreadFile[] }).files;
    read().then(
      (found) => setFiles(found.filter((one) => one.uploaded)),
      () => undefined, // without the list, the answer still says what was done
    );
  }, [path]);
  if (files.length === 0) return null;
  const folders = files.length > MOST_FILES ? foldersOf(files) : new Map<string, ThreadFile[]>([["", files]]);
  return (
    <section class="files" aria-label={texts.yourFiles}>
      <p>{texts.yourFiles}</p>
      {[...folders].map(([folder, inside]) =>
        folder ? (
          <details key={folder}>
            <summary>{texts.filesIn(folder, inside.length)}</summary>
            <FileButtons files={inside} />
          </details>
        ) : (
          <FileButtons key="" files={inside} />
        ),
      )}
    </section>
  );
}

function FileButtons({ files }: { files: ThreadFile[] }) {
  const { ask, attempt } = useService();
  return (
    <ul>
      {files.map(({ path, size, url }) => (
        <li key={path}>
          <button onClick={() => void attempt(() => ask(url).then((answer) => save(answer, path.slice(path.lastIndexOf("/") + 1))))}>
            <span aria-hidden="true">↓</span> {path} <span class="who">{sizeOf(size)}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

/** The files by their folders; "" is the top. */
function foldersOf(files: readonly ThreadFile[]): Map<string, ThreadFile[]> {
  const folders = new Map<string, ThreadFile[]>();
  for (const file of files) {
    const folder = file.path.slice(0, file.path.lastIndexOf("/") + 1);
    folders.set(folder, [...(folders.get(folder) ?? []), file]);
  }
  return folders;
}
