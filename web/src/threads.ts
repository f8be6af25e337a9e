import { signal } from "@preact/signals";
import { read, send } from "./api";

export interface Thread {
  thread_id: string;
  title: string;
  status: "idle" | "busy" | "interrupted" | "error";
  updated_at: number;
}

interface Page {
  threads: Thread[];
  next_before: number | null;
}

const PAGE = 30;

export const threads = signal<Thread[]>([]);
export const searched = signal("");
export const hasMore = signal(false);
let shown = PAGE;
let asked = 0;

/** Read the list again, as far as it is shown. Of two that overlap the later request counts. */
export async function refreshThreads(): Promise<void> {
  const turn = ++asked;
  const found: Thread[] = [];
  let before: number | null = null;
  do {
    const query = new URLSearchParams({ limit: String(PAGE) });
    if (searched.value.trim()) query.set("q", searched.value.trim());
    if (before !== null) query.set("before", String(before));
    const page: Page = await read(`/api/threads?${query}`);
    found.push(...page.threads);
    before = page.next_before;
  } while (before !== null && found.length < shown);
  if (turn !== asked) return;
  threads.value = found;
  hasMore.value = before !== null;
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
