import type { Interrupt } from "./events";
import type { Budget } from "./limits";
import { signal } from "@preact/signals";
import { Refusal, ask, read, send } from "./api";
import { type BranchPoint, conversationId, takeBranches } from "./branches";
import type { PlanChange } from "./components/service";
import { moveDraft } from "./drafts";
import { forgetFound, showFound } from "./passage";
import { moveReviewing } from "./reviewing";
import type { Found } from "./search";
import { reconnectNow } from "./stream";
import { followOne, isFollowed, unfollow } from "./subscriptions";
import { RunModel } from "./run";
import { type Thread, makeThread, refreshThreads, threads } from "./threads";
import { texts } from "./texts";
import { type ThreadFile, uploaded } from "./uploaded";

export interface RunChoices {
  deep_thinking_mode: boolean;
  search_before_planning: boolean;
  auto_accepted_plan: boolean;
  team_members: string[] | null;
  /** Null: as the settings of the service say. */
  depth: string | null;
  report_style: string | null;
  /** Null leaves it to the models. */
  effort: string | null;
  budget: Budget | null;
  model: string | null;
}

interface Detail {
  runs: { run_id: string; status: string; question: string | null }[];
  conversation_id: string;
  branch_points: BranchPoint[];
}

const FIRST_RUNS = 8;
const REFRESH_MS = 10_000;
/** How many runs of a conversation are tried as the target of a text, as they end one after another. */
const MAX_TARGETS = 5;
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
let filesAsked = 0;
const otherTabs = new BroadcastChannel("maniple");

/** The runs of the open conversation, oldest first. */
export function openRuns(): readonly RunModel[] {
  return runs;
}

/** The run that the composer's button cancels: the first that works or waits for the user. */
export function foremostRun(): RunModel | undefined {
  return runs.find((run) => run.isAtWork || run.status === "interrupted");
}

/** The run whose plan and work stand beside the conversation: the one that works or waits, else the newest. */
export function besideRun(): RunModel | undefined {
  return foremostRun() ?? runs.at(-1);
}

/** Whether the composer's button cancels this run; what is drawn from it is drawn again when that changes. */
export function isForemost(run: RunModel): boolean {
  void tick.value;
  return run === foremostRun();
}

/** Whether the question of a run stands in the open conversation; what is drawn from it is drawn again when that changes. */
export function isAskedHere(runId: string): boolean {
  void tick.value;
  return runs.some((run) => run.runId === runId && run.question !== "");
}

/** Give the runs that messages became their questions, before they begin. */
function askNext(): void {
  for (const { nextRun, content } of runs.flatMap((run) => run.exchanges)) {
    if (nextRun !== null) runs.find((run) => run.runId === nextRun)?.ask(content);
  }
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

/** When the question before that of the run at this position was asked, in Unix seconds: 0 for the first, null if that is unknown. */
export function askedBefore(at: number): number | null {
  const before = runs[at - 1];
  if (!before) return earlier.value > 0 ? null : 0;
  return before.exchanges.at(-1)?.at ?? before.askedAt;
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
  forgetFound();
  runs = [];
  shown = FIRST_RUNS;
  earlier.value = 0;
  isGone.value = false;
  trouble.value = "";
  openId.value = id;
  takeBranches(null);
  place = { from: id, id };
  changed();
  uploaded.value = [];
  if (id === null) return;
  refreshUploaded(id);
  await attempt(reload);
}

/** Load the user's files of the open conversation; without the list, the questions stand without their files. */
function refreshUploaded(id: string): void {
  const turn = ++filesAsked;
  const load = async () => {
    const { files } = await read<{ files: ThreadFile[] }>(`/api/threads/${encodeURIComponent(id)}/files`);
    // Of overlapping requests the later one counts.
    if (openId.value === id && turn === filesAsked) uploaded.value = files.filter((one) => one.uploaded);
  };
  void load().catch(() => undefined);
}

/** Open the run of a hit of the search at the passage that was found. */
export async function openAt(hit: Found): Promise<void> {
  const { thread_id: id, run_id: runId } = hit;
  if (openId.value !== id) {
    history.pushState(null, "", `#${encodeURIComponent(id)}`);
    await open(id);
  }
  while (earlier.value > 0 && !runs.some((one) => one.runId === runId)) {
    const before = earlier.value;
    await showEarlier();
    if (earlier.value === before) break;
  }
  // Once what was loaded is drawn.
  requestAnimationFrame(() => requestAnimationFrame(() => document.getElementById(`run-${runId}`)?.scrollIntoView()));
  if (openId.value === id) showFound(hit, () => (trouble.value = texts.passageNotShown(hit.passage)));
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

/** Load the runs of the open conversation, also those that were started elsewhere. */
async function reload(): Promise<void> {
  const id = openId.value;
  if (id === null) return;
  const detail = await readThread(id).catch((error: unknown) => unlessGone(error, id));
  if (detail) takeIn(id, detail);
}

function readThread(id: string): Promise<Detail> {
  return read<Detail>(`/api/threads/${encodeURIComponent(id)}`);
}

/** Show the runs of the conversation, if it is still open, and follow those with more events. */
function takeIn(id: string, detail: Detail): void {
  if (openId.value !== id) return;
  reconnectNow();
  takeBranches(detail);
  const known = new Map(runs.map((run) => [run.runId, run]));
  const listed = detail.runs.slice(0, shown).reverse();
  earlier.value = detail.runs.length - listed.length;
  runs = listed.map((one) => known.get(one.run_id) ?? new RunModel(one.run_id, "", one.status));
  listed.forEach((one, index) => {
    const run = runs[index]!;
    if (one.question) run.ask(one.question);
    if (!isFollowed(run)) run.updateStatus(one.status);
  });
  askNext();
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
    askNext();
    if (run.movesFiles && id !== null) refreshUploaded(id);
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

/** Send a text to the team: a message to the run that works or waits, else a question. It answers nothing. */
export function say(text: string, choices: RunChoices, files: readonly File[]): Promise<boolean> {
  return inTurn((to) => put(to, text, choices, files));
}

/** Ask a question as a run of its own, after those that work. */
export function askAgain(question: string, choices: RunChoices): Promise<boolean> {
  return inTurn(async (to) => {
    const id = to.id ?? (await begin(to));
    // The service would take it for the answer.
    if ((await targetIn(id))?.status === "interrupted") throw new Refusal(409, "waits", texts.answerFirst, null);
    await askQuestion(id, question, choices);
  });
}

/** Texts are sent in order; the first one creates a new conversation. */
function inTurn(work: (to: Place) => Promise<void>): Promise<boolean> {
  const to = place;
  const turn = asking.then(() => attempt(() => work(to)));
  asking = turn;
  return turn;
}

async function put(to: Place, text: string, choices: RunChoices, files: readonly File[]): Promise<void> {
  const isNew = to.id === null;
  const id = to.id ?? (await begin(to));
  if (files.length > 0) {
    const body = new FormData();
    for (const file of files) body.append("files", file);
    await ask(`/api/threads/${encodeURIComponent(id)}/files`, { method: "POST", body });
    refreshUploaded(id);
  }
  for (let left = MAX_TARGETS; !isNew && left > 0; left -= 1) {
    const target = await targetIn(id);
    if (!target) break;
    try {
      return await write(id, target.run_id, text);
    } catch (error) {
      // It has just ended.
      if (!(error instanceof Refusal) || error.code !== "not_working" || left === 1) throw error;
    }
  }
  await askQuestion(id, text, choices);
}

/** The run of a conversation that a text for the team goes to: the oldest that works, else the newest that waits. */
async function targetIn(id: string): Promise<Detail["runs"][number] | undefined> {
  // Only the service knows for sure: what this page takes for ended may wait for an answer.
  const detail = await readThread(id);
  takeIn(id, detail);
  const listed = detail.runs;
  return listed.findLast(({ status }) => status === "queued" || status === "running") ?? listed.find(({ status }) => status === "interrupted");
}

/** Write to the team of a run; of one that waits, a question is answered when this returns. */
async function write(id: string, runId: string, content: string): Promise<void> {
  const { message_id } = await send<{ message_id: string }>("POST", `/api/runs/${encodeURIComponent(runId)}/messages`, { content });
  if (openId.value !== id) return tellTabs();
  const run = runs.find((one) => one.runId === runId);
  run?.wrote(message_id, content);
  asked.value = message_id;
  if (!run) await reload();
  goOn();
}

/** Ask a question as a run of its own. */
async function askQuestion(id: string, text: string, choices: RunChoices): Promise<void> {
  const path = `/api/threads/${encodeURIComponent(id)}/runs`;
  const accepted = await send<{ run_id: string }>("POST", path, { input: text, ...choices, multitask_strategy: "enqueue" });
  if (openId.value !== id) return tellTabs();
  asked.value = accepted.run_id;
  if (!runs.some((one) => one.runId === accepted.run_id)) runs = [...runs, new RunModel(accepted.run_id, text)];
  goOn();
}

/** Create a conversation and open it, unless the user has opened another one. */
async function begin(to: Place): Promise<string> {
  const id = await makeThread();
  to.id = id;
  // Text typed in the meantime for yet another new conversation stays there.
  if (place === to || openId.value !== to.from) {
    moveDraft(to.from, id);
    moveReviewing(to.from, id);
  }
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

/** Ask the question of a run again on a branch, with another text unless it is empty, and open the branch. */
export function branch(run: RunModel, text: string, choices: RunChoices): Promise<boolean> {
  const from = openId.value;
  return attempt(async () => {
    const path = `/api/runs/${encodeURIComponent(run.runId)}/branch`;
    const accepted = await send<{ run_id: string; thread_id: string }>("POST", path, { ...(text && { input: text }), run: choices });
    tellTabs();
    void refreshThreads().catch(() => undefined);
    moveReviewing(from, accepted.thread_id);
    // The user may have gone elsewhere meanwhile.
    if (openId.value !== from) return;
    moveDraft(from, accepted.thread_id);
    await open(accepted.thread_id);
    asked.value = accepted.run_id;
    history.pushState(null, "", `#${encodeURIComponent(accepted.thread_id)}`);
  });
}

/** Change a step of a running plan; the stream sends the new plan. */
export function changePlan(run: RunModel, change: PlanChange): Promise<boolean> {
  return attempt(async () => {
    await send("POST", `/api/runs/${run.runId}/plan`, change);
    run.reopen();
    goOn();
  });
}

/** Show what follows from an accepted request. */
function goOn(): void {
  // The service answers again: a lost stream need not wait.
  reconnectNow();
  keepUp();
  tellTabs();
  changed();
  void refreshThreads().catch(() => undefined);
}

/** Notify other tabs about changes. */
export function tellTabs(): void {
  otherTabs.postMessage("changed");
}

/** The open conversation in the list; a branch is not in it by itself. */
function listedThread(): Thread | undefined {
  const id = conversationId.value ?? openId.value;
  return threads.value.find((one) => one.thread_id === id);
}

async function lookAround(): Promise<void> {
  if (document.hidden) {
    unfollow((run) => run.isAtWork);
    // The title of the tab still shows the status of its runs.
    if (runs.some((run) => run.isAtWork)) await reload();
    return;
  }
  const before = listedThread();
  await refreshThreads();
  const now = listedThread();
  // A conversation that is missing in the list may have been deleted.
  const isChanged = now ? now.status !== before?.status || now.updated_at !== before.updated_at : before;
  // What waits may have been answered elsewhere, and wait again.
  if (isChanged || runs.some((run) => run.status === "interrupted")) await reload();
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
