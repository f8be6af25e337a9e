import { signal } from "@preact/signals";
import { read, send } from "./api";
import { searchTexts } from "./search";

export interface Thread {
  thread_id: string;
  title: string;
  status: "idle" | "busy" | "interrupted" | "error";
  updated_at: number;
  /** The thread of it that was touched last: itself, or a branch. */
  newest_branch: string;
}

interface Page {
  threads: Thread[];
  next_before: number | null;
}

const PAGE = 30;

export const threads = signal<Thread[]>([]);
export const searched = signal("");
export const hasMore = signal(false);
/** The search text of the loaded list; null before the first load. */
export const readFor = signal<string | null>(null);
/** Whether the last request of the list failed. */
export const isUnread = signal(false);
let shown = PAGE;
let asked = 0;

/** Reload the shown part of the list, and what a search found in texts. Of overlapping requests the later one counts. */
export async function refreshThreads(): Promise<void> {
  const turn = ++asked;
  const sought = searched.value.trim();
  try {
    const [{ found, before }] = await Promise.all([list(sought), searchTexts(sought)]);
    if (turn !== asked) return;
    threads.value = found;
    hasMore.value = before !== null;
    readFor.value = sought;
    isUnread.value = false;
  } catch (error) {
    if (turn === asked) isUnread.value = true;
    throw error;
  }
}

async function list(sought: string): Promise<{ found: Thread[]; before: number | null }> {
  const found: Thread[] = [];
  let before: number | null = null;
  do {
    const query = new URLSearchParams({ limit: String(PAGE) });
    if (sought) query.set("q", sought);
    if (before !== null) query.set("before", String(before));
    const page: Page = await read(`/api/threads?${query}`);
    found.push(...page.threads);
    before = page.next_before;
  } while (before !== null && found.length < shown);
  return { found, before };
}

export async function showMore(): Promise<void> {
  shown += PAGE;
  await refreshThreads();
}

export async function makeThread(): Promise<string> {
  return (await send<Thread>("POST", "/api/threads")).thread_id;
}

export async function renameThread(id: string, title: string): Promise<void> {
  await send("PATCH", `/api/threads/${encodeURIComponent(id)}`, { title });
}

export async function deleteThread(id: string): Promise<void> {
  await send("DELETE", `/api/threads/${encodeURIComponent(id)}`);
}
