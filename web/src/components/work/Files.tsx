import type { ArtifactLink } from "../../events";
import { save } from "../../download";
import { figurePath } from "../../figures";
import { texts } from "../../texts";
import type { ThreadFile } from "../../uploaded";
import { sizeOf } from "../../uploads";
import { useFetched } from "../fetched";
import { useService } from "../service";
import { Picture } from "./Picture";

/** A picture in Markdown: its target, in angle brackets or bare. */
const FIGURE = /!\[[^\]]*\]\(\s*(?:<([^>\n]*)>|([^\s)]+))/g;
const PICTURE = /^image\/(png|jpeg|gif|webp)$/;

interface Shown {
  artifacts: ArtifactLink[];
  threadId: string;
  /** The answer, which shows figures of its own. */
  answer?: string;
}

/** The files of a run; each, or all of its conversation, is fetched with the API key and saved. Pictures that the answer shows are not shown again. */
export function Files({ artifacts, threadId, answer = "" }: Shown) {
  const { ask, attempt, has } = useService();
  const shown = shownFigures(answer);
  const pictures = artifacts.filter((one) => PICTURE.test(one.media_type) && !shown.has(one.name));
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
        {threadId && <AllFiles threadId={threadId} />}
      </ul>
    </section>
  );
}

/** The entry that saves all files of a conversation. */
export function AllFiles({ threadId }: { threadId: string }) {
  const { ask, attempt, has } = useService();
  const all = `/api/threads/${encodeURIComponent(threadId)}/files.zip`;
  if (!has(all)) return null;
  return (
    <li>
      <button title={texts.allFilesHint} onClick={() => void attempt(() => ask(all).then((answer) => save(answer, "files.zip")))}>
        <span aria-hidden="true">↓</span> {texts.allFiles} <span class="who">ZIP</span>
      </button>
    </li>
  );
}

/** The names of the files whose pictures are in a Markdown text. */
export function shownFigures(text: string): ReadonlySet<string> {
  const paths = [...text.matchAll(FIGURE)].map((found) => figurePath(found[1] ?? found[2]!));
  return new Set(paths.filter(Boolean).map((path) => path.slice(path.lastIndexOf("/") + 1)));
}

/** The number of files that are listed unfolded. */
export const MOST_FILES = 20;

/** The user's files of a conversation. */
export function UserFiles({ threadId }: { threadId: string }) {
  // Without the list, the answer still says what was done.
  const files = useFetched<{ files: ThreadFile[] }>(`/api/threads/${encodeURIComponent(threadId)}/files`).data?.files.filter((one) => one.uploaded) ?? [];
  if (files.length === 0) return null;
  return (
    <section class="files" aria-label={texts.yourFiles}>
      <p>{texts.yourFiles}</p>
      <FileFolders files={files} />
    </section>
  );
}

/** Files, below their folders if there are many. */
export function FileFolders({ files }: { files: readonly ThreadFile[] }) {
  const folders = files.length > MOST_FILES ? foldersOf(files) : new Map<string, readonly ThreadFile[]>([["", files]]);
  return (
    <>
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
    </>
  );
}

export function FileButtons({ files }: { files: readonly ThreadFile[] }) {
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
