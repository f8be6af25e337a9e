import { signal } from "@preact/signals";

/** A file of the workspace, as in `GET /api/threads/{thread_id}/files`. */
export interface ThreadFile {
  path: string;
  size: number;
  uploaded: boolean;
  /** When the user uploaded it, in Unix seconds. */
  uploaded_at: number | null;
  url: string;
}

/** The user's files in the open conversation, as far as the team has not changed them. */
export const uploaded = signal<readonly ThreadFile[]>([]);

/** The files that came with a question asked at `at`: those since the question before it. Times are Unix seconds, null if unknown. */
export function filesOf(files: readonly ThreadFile[], since: number | null, at: number | null): ThreadFile[] {
  if (since === null || at === null) return [];
  return files.filter(({ uploaded_at }) => uploaded_at !== null && uploaded_at > since && uploaded_at <= at);
}
