import type { Interrupt } from "./events";
import { signal } from "@preact/signals";
import { Refusal, ask, read, send } from "./api";
import type { PlanChange } from "./components/service";
import { moveDraft } from "./drafts";
import { followOne, isFollowed, unfollow } from "./subscriptions";
import { RunModel } from "./run";
import { makeThread, refreshThreads, threads } from "./threads";
import { texts } from "./texts";

export interface RunChoices {
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
/** How long after a tab is hidden its streams are closed. */
const HIDDEN_MS = 5_000;

/** The id of the open conversation; null for a new one. */
export const openId = signal<string | null>(null);
/** Whether the open conversation does not exist (any more). */
export const isGone = signal(false);
/** The error of the user's last action. */
export const trouble = signal("");
/** Increases when any run changed, at most once per frame. */
export const tick = signal(0);
export const earlier = signal(0);
/** The newest run that was started in this tab. */
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
  // Hidden tabs get no animation frames.
  const soon = document.hidden ? (work: () => void) => setTimeout(work, 100) : requestAnimationFrame;
  soon(() => {
    isDue = false;
    tick.value += 1;
  });
}

/** Run an action of the user; refusals are shown. */
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
  return error instanceof TypeError ? texts.unreachable : String(error);
}

export async function open(id: string | null): Promise<void> {
  unfollow();
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

/** Mark the open conversation as deleted if an error says so. */
function unlessGone(error: unknown, id: string | null): void {
  if (!(error instanceof Refusal) || error.status !== 404) throw error;
  if (openId.value !== id) return;
  isGone.value = true;
  place.id = null;
  unfollow();
  runs = [];
  changed();
}

/** Load runs that were started elsewhere, and follow those with more events. */
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
    if (!isFollowed(run)) run.updateStatus(one.status);
  });
  keepUp();
  changed();
}

/** Follow finished runs, and only the oldest active one, because a browser has six connections for all tabs. */
function keepUp(): void {
  const due = runs.filter((run) => !run.isComplete);
  const oldest = due.find((run) => run.isAtWork);
  for (const run of due) {
    if (!isFollowed(run) && (!run.isAtWork || (run === oldest && !document.hidden))) void keepUpWith(run);
  }
}

async function keepUpWith(run: RunModel): Promise<void> {
  const id = openId.value;
  try {
    await followOne(run, changed).catch((error: unknown) => unlessGone(error, id));
    const next = run.exchanges.map((one) => one.nextRun);
    if (next.some((one) => one !== null && !runs.some(({ runId }) => runId === one))) await reload();
    keepUp();
  } catch (error) {
    complain(error);
  }
  changed();
  await refreshThreads().catch(() => undefined);
}

/** The target of a question: the conversation with the `id`, or a new one. */
interface Place {
  readonly from: string | null;
  id: string | null;
}

/** The open conversation as a target. */
export function here(): Place {
  return place;
}

let asking: Promise<unknown> = Promise.resolve();

/** How a question during a run is handled: as a message to it, or as the next run. */
type Strategy = "steer" | "enqueue";

/** Ask in the open conversation. Questions are sent in order; the first one creates a new conversation. */
export function say(text: string, choices: RunChoices, files: readonly File[], strategy: Strategy = "steer"): Promise<boolean> {
  const to = place;
  const turn = asking.then(() => attempt(() => put(to, text, { ...choices, multitask_strategy: strategy }, files)));
  asking = turn;
  return turn;
}

async function put(to: Place, text: string, choices: RunChoices & { multitask_strategy: Strategy }, files: readonly File[]): Promise<void> {
  const id = to.id ?? (await begin(to));
  const path = `/api/threads/${encodeURIComponent(id)}`;
  if (files.length > 0) {
    const body = new FormData();
    for (const file of files) body.append("files", file);
    await ask(`${path}/files`, { method: "POST", body });
  }
  const accepted = await send<{ run_id: string }>("POST", `${path}/runs`, { input: text, ...choices });
  if (openId.value !== id) return tellTabs();
  asked.value = accepted.run_id;
  let run = runs.find((one) => one.runId === accepted.run_id);
  if (!run) runs = [...runs, (run = new RunModel(accepted.run_id, text))];
  goOn();
}

/** Create a conversation and open it, unless the user has opened another one. */
async function begin(to: Place): Promise<string> {
  const id = await makeThread();
  to.id = id;
  // Text typed in the meantime for yet another new conversation stays there.
  if (place === to || openId.value !== to.from) moveDraft(to.from, id);
  if (place === to) {
    await open(id);
    history.replaceState(null, "", `#${encodeURIComponent(id)}`);
  }
  return id;
}

export function answer(run: RunModel, to: Interrupt, reply: unknown): Promise<boolean> {
  return attempt(async () => {
    const { interrupt_id } = to;
    await send("POST", `/api/runs/${run.runId}/resume`, { answer: reply, interrupt_id }).catch((error: unknown) => unlessAnswered(error, run));
    run.answered(to);
    goOn();
  });
}

/** If somebody else was faster, load the result and show a note. */
async function unlessAnswered(error: unknown, run: RunModel): Promise<never> {
  if (!(error instanceof Refusal) || error.code !== "not_waiting") throw error;
  run.reopen();
  await reload();
  throw new Refusal(error.status, error.code, texts.answeredElsewhere, error.body);
}

export function cancel(run: RunModel): Promise<boolean> {
  return attempt(async () => {
    const { status } = await send<{ status: string }>("POST", `/api/runs/${run.runId}/cancel`);
    run.updateStatus(status);
    goOn();
  });
}

/** Retry a run that failed or has gaps. */
export function retry(run: RunModel): Promise<boolean> {
  return attempt(async () => {
    await send("POST", `/api/runs/${run.runId}/retry`);
    run.retried();
    goOn();
  });
}

/** Change a step of a running plan; the stream sends the new plan. */
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

/** Notify other tabs about changes. */
export function tellTabs(): void {
  otherTabs.postMessage("changed");
}

async function lookAround(): Promise<void> {
  if (document.hidden) {
    unfollow((run) => run.isAtWork);
    // The title of the tab still shows the status of its runs.
    if (runs.some((run) => run.isAtWork)) await reload();
    return;
  }
  const before = threads.value.find((one) => one.thread_id === openId.value);
  await refreshThreads();
  const now = threads.value.find((one) => one.thread_id === openId.value);
  // A conversation that is missing in the list may have been deleted.
  if (now ? now.status !== before?.status || now.updated_at !== before.updated_at : before) await reload();
}

/** Synchronise with other tabs, users and programs. */
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
