import { signal } from "@preact/signals";
import { Refusal, ask, read, send } from "./api";
import type { PlanChange } from "./components/service";
import { moveDraft } from "./drafts";
import { followOne, isFollowed, letGo } from "./followers";
import { RunModel } from "./run";
import { makeThread, refreshThreads, threads } from "./threads";
import { words } from "./words";

export interface Wishes {
  deep_thinking_mode: boolean;
  search_before_planning: boolean;
  auto_accepted_plan: boolean;
  team_members: string[] | null;
}

interface Detail {
  runs: { run_id: string; status: string }[];
}

const FIRST_RUNS = 8;
const REFRESH_MS = 10_000;
/** So long after a tab was hidden it lets go of its streams. */
const HIDDEN_MS = 5_000;

/** The conversation that is open, by its id; null when a new one is about to begin. */
export const openId = signal<string | null>(null);
/** Whether the conversation that is open is not there, or not any more. */
export const isGone = signal(false);
/** What went wrong with the last thing that the person did. */
export const trouble = signal("");
/** Goes up when any run changed: at most once in a frame of the screen. */
export const tick = signal(0);
export const earlier = signal(0);
/** The run that was asked for last in this tab. */
export const asked = signal("");

let place: Place = { from: null, id: null };
let runs: RunModel[] = [];
let shown = FIRST_RUNS;
const otherTabs = new BroadcastChannel("maniple");

/** The runs of the open conversation, oldest first. */
export function openRuns(): readonly RunModel[] {
  return runs;
}

let isDue = false;
function changed(): void {
  if (isDue) return;
  isDue = true;
  // A hidden tab gets no frames.
  const soon = document.hidden ? (work: () => void) => setTimeout(work, 100) : requestAnimationFrame;
  soon(() => {
    isDue = false;
    tick.value += 1;
  });
}

/** Do what the person asked for; what is refused is shown. */
export async function attempt(work: () => Promise<void>): Promise<boolean> {
  trouble.value = "";
  try {
    await work();
    return true;
  } catch (error) {
    complain(error);
    return false;
  }
}

function complain(error: unknown): void {
  if (!(error instanceof Refusal) || error.status !== 401) trouble.value = sentence(error);
}

function sentence(error: unknown): string {
  if (error instanceof Refusal) return error.message;
  return error instanceof TypeError ? words.unreachable : String(error);
}

export async function open(id: string | null): Promise<void> {
  letGo();
  runs = [];
  shown = FIRST_RUNS;
  earlier.value = 0;
  isGone.value = false;
  trouble.value = "";
  openId.value = id;
  place = { from: id, id };
  changed();
  if (id !== null) await attempt(reload);
}

export async function showEarlier(): Promise<void> {
  shown += FIRST_RUNS;
  await attempt(reload);
}

/** Take note that the open conversation was deleted, if that is what an error says. */
function unlessGone(error: unknown, id: string | null): void {
  if (!(error instanceof Refusal) || error.status !== 404) throw error;
  if (openId.value !== id) return;
  isGone.value = true;
  place.id = null;
  letGo();
  runs = [];
  changed();
}

/** Learn of runs that were begun elsewhere, and follow each that has more to tell. */
async function reload(): Promise<void> {
  const id = openId.value;
  if (id === null) return;
  const asked = read<Detail>(`/api/threads/${encodeURIComponent(id)}`);
  const detail = await asked.catch((error: unknown) => unlessGone(error, id));
  if (!detail || openId.value !== id) return;
  const known = new Map(runs.map((run) => [run.runId, run]));
  const listed = detail.runs.slice(0, shown).reverse();
  earlier.value = detail.runs.length - listed.length;
  runs = listed.map((one) => known.get(one.run_id) ?? new RunModel(one.run_id, "", one.status));
  listed.forEach((one, index) => {
    const run = runs[index]!;
    if (!isFollowed(run)) run.heard(one.status);
  });
  keepUp();
  changed();
}

/** Follow what has an end already, and of what is at work the oldest alone: a browser has six connections for all tabs. */
function keepUp(): void {
  const due = runs.filter((run) => !run.isTold);
  const oldest = due.find((run) => run.isAtWork);
  for (const run of due) {
    if (!isFollowed(run) && (!run.isAtWork || (run === oldest && !document.hidden))) void keepUpWith(run);
  }
}

async function keepUpWith(run: RunModel): Promise<void> {
  const id = openId.value;
  try {
    await followOne(run, changed).catch((error: unknown) => unlessGone(error, id));
    keepUp();
  } catch (error) {
    complain(error);
  }
  changed();
  await refreshThreads().catch(() => undefined);
}

/** Where a question goes: to the conversation with the `id`, or to a new one. */
interface Place {
  readonly from: string | null;
  id: string | null;
}

/** The place that is open. */
export function here(): Place {
  return place;
}

let asking: Promise<unknown> = Promise.resolve();

/** Ask in the open conversation. Questions go one after another: the first of a new one makes it. */
export function say(text: string, wishes: Wishes, files: readonly File[]): Promise<boolean> {
  const to = place;
  const turn = asking.then(() => attempt(() => put(to, text, wishes, files)));
  asking = turn;
  return turn;
}

async function put(to: Place, text: string, wishes: Wishes, files: readonly File[]): Promise<void> {
  const id = to.id ?? (await begin(to));
  const path = `/api/threads/${encodeURIComponent(id)}`;
  if (files.length > 0) {
    const body = new FormData();
    for (const file of files) body.append("files", file);
    await ask(`${path}/files`, { method: "POST", body });
  }
  const accepted = await send<{ run_id: string }>("POST", `${path}/runs`, { input: text, ...wishes });
  if (openId.value !== id) return tellTabs();
  asked.value = accepted.run_id;
  let run = runs.find((one) => one.runId === accepted.run_id);
  if (!run) runs = [...runs, (run = new RunModel(accepted.run_id, text))];
  goOn();
}

/** Make the conversation that a question begins, and open it unless the person has gone elsewhere. */
async function begin(to: Place): Promise<string> {
  const id = await makeThread();
  to.id = id;
  // What was typed meanwhile in a third one that is about to begin stays there.
  if (place === to || openId.value !== to.from) moveDraft(to.from, id);
  if (place === to) {
    await open(id);
    history.replaceState(null, "", `#${encodeURIComponent(id)}`);
  }
  return id;
}

export function answer(run: RunModel, reply: unknown): Promise<boolean> {
  return attempt(async () => {
    const interrupt_id = run.waiting?.interrupt_id ?? "";
    await send("POST", `/api/runs/${run.runId}/resume`, { answer: reply, interrupt_id }).catch((error: unknown) => unlessAnswered(error, run));
    run.answered(interrupt_id);
    goOn();
  });
}

/** When somebody else was faster, learn what came of it, and say so. */
async function unlessAnswered(error: unknown, run: RunModel): Promise<never> {
  if (!(error instanceof Refusal) || error.code !== "not_waiting") throw error;
  run.reopen();
  await reload();
  throw new Refusal(error.status, error.code, words.answeredElsewhere, error.told);
}

export function cancel(run: RunModel): Promise<boolean> {
  return attempt(async () => {
    const { status } = await send<{ status: string }>("POST", `/api/runs/${run.runId}/cancel`);
    run.heard(status);
    goOn();
  });
}

/** Do what a run that failed, or one with gaps, has not done. */
export function retry(run: RunModel): Promise<boolean> {
  return attempt(async () => {
    await send("POST", `/api/runs/${run.runId}/retry`);
    run.retried();
    goOn();
  });
}

/** Change a step of a plan under way; the stream tells what the plan is then. */
export function changePlan(run: RunModel, change: PlanChange): Promise<boolean> {
  return attempt(async () => {
    await send("POST", `/api/runs/${run.runId}/plan`, change);
  });
}

function goOn(): void {
  keepUp();
  tellTabs();
  changed();
  void refreshThreads().catch(() => undefined);
}

/** Let other tabs look at what was done here. */
export function tellTabs(): void {
  otherTabs.postMessage("changed");
}

async function lookAround(): Promise<void> {
  if (document.hidden) {
    letGo((run) => run.isAtWork);
    // The name of the tab still tells how its runs stand.
    if (runs.some((run) => run.isAtWork)) await reload();
    return;
  }
  const before = threads.value.find((one) => one.thread_id === openId.value);
  await refreshThreads();
  const now = threads.value.find((one) => one.thread_id === openId.value);
  // One that has vanished from the list may have been deleted.
  if (now ? now.status !== before?.status || now.updated_at !== before.updated_at : before) await reload();
}

/** Agree with what other tabs, people and programs do on the same conversations. */
export function keepAgreeing(): void {
  const look = () => void lookAround().catch(() => undefined);
  otherTabs.addEventListener("message", () => void refreshThreads().then(reload, () => undefined));
  let hiding: ReturnType<typeof setTimeout> | undefined;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(look, HIDDEN_MS);
    else (keepUp(), look());
  });
  setInterval(look, REFRESH_MS);
}
