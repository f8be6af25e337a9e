import { openId } from "../../conversation";
import type { RunModel } from "../../run";
import { texts } from "../../texts";
import type { ThreadFile } from "../../uploaded";
import { useFetched } from "../fetched";
import { AllFiles, FileFolders } from "../work/Files";

interface Listed {
  files: ThreadFile[];
  has_more: boolean;
}

/** The files of the conversation as they are now: the user's, and what the team made. */
export function FilesTab({ run }: { run: RunModel; version: number }) {
  const threadId = openId.value ?? "";
  const path = `/api/threads/${encodeURIComponent(threadId)}/files`;
  const { data, hasFailed } = useFetched<Listed>(path, `${run.artifacts.length} ${run.status}`);
  if (hasFailed) return <p class="faint">{texts.filesUnread}</p>;
  if (!data) return null;
  if (data.files.length === 0) return <p class="faint">{texts.noFiles}</p>;
  return (
    <>
      <Group name={texts.madeFiles} files={data.files.filter((one) => !one.uploaded)} />
      <Group name={texts.givenFiles} files={data.files.filter((one) => one.uploaded)} />
      {data.has_more && <p class="faint">{texts.moreFiles}</p>}
      <div class="files"><ul><AllFiles threadId={threadId} /></ul></div>
    </>
  );
}

function Group({ name, files }: { name: string; files: readonly ThreadFile[] }) {
  if (files.length === 0) return null;
  return (
    <section class="files">
      <h3>{name}</h3>
      <FileFolders files={files} />
    </section>
  );
}
