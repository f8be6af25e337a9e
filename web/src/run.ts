import type { ArtifactLink, ChatMessage, Gap, Interrupt, RunEvent, Step } from "./events";
import { type Said, type Turn, Turns } from "./turns";
import { Film } from "./film";

export type { Call, Printed, Said, Turn } from "./turns";

export interface Problem {
  code: string;
  message: string;
}

/** Who speaks to the person; what the others say belongs to the work. */
const SPEAKERS = new Set(["coordinator", "reporter"]);
/** What tells that somebody is at work. */
const BEGINS = new Set(["start_of_workflow", "start_of_agent"]);
const ENDED = new Set(["completed", "failed", "cancelled", "budget_exhausted"]);

/**
 * One run as its events tell it: each is taken in constant time, and whoever shows the run compares `version`.
 * Events with a number that was seen before are passed over, so that a stream may be told again.
 */
export class RunModel {
  question: string;
  status: string;
  plan: { title: string; steps: Step[] } | null = null;
  waiting: Interrupt | null = null;
  problems: Problem[] = [];
  /** The steps whose results the answer lacks. */
  gaps: Gap[] = [];
  artifacts: ArtifactLink[] = [];
  tokens = 0;
  readonly film = new Film();
  lastId = 0;
  version = 0;
  /** Whether the newest stretch of the stream was told to its last event. */
  isTold = false;
  #answer: Said | null = null;
  #turns = new Turns();
  #kept = new Map<string, number>();
  /** When the stretch that is told began, and how long the earlier ones took, in seconds. */
  #since: number | null = null;
  #worked = 0;
  /** Whether the stream has told an end; a further `run` then begins a retry. */
  #wasEnded = false;

  constructor(
    readonly runId: string,
    question = "",
    status = "queued",
  ) {
    this.question = question;
    this.status = status;
  }

  get isOver(): boolean {
    return ENDED.has(this.status);
  }

  get isAtWork(): boolean {
    return this.status === "queued" || this.status === "running";
  }

  get turns(): readonly Turn[] {
    return this.#turns.all;
  }

  /** How many tools were called. */
  get calls(): number {
    return this.#turns.calls;
  }

  /** How long the run has worked at the time `now`, without what it waited for a person; null where no times are told. */
  worked(now: number): number | null {
    if (this.#since !== null) return this.#worked + Math.max(0, now - this.#since);
    return this.#worked > 0 ? this.#worked : null;
  }

  /** What was said to the person: by the coordinator or the reporter, else by whoever spoke last. */
  get answer(): Said | null {
    return this.#answer ?? (this.status === "completed" ? this.#lastSaid() : null);
  }

  /** Note that the stream has more to tell than was told. */
  reopen(): void {
    if (this.isOver) return;
    this.isTold = false;
    this.version += 1;
  }

  /** Note that the stream has no more to tell. */
  close(): void {
    this.isTold = true;
    this.version += 1;
  }

  /** Note that the interrupt was answered, unless the stream was faster to tell of it. */
  answered(interruptId: string): void {
    if (this.status !== "interrupted" || this.waiting?.interrupt_id !== interruptId) return;
    this.status = "queued";
    this.reopen();
  }

  /** Note that the run, which was over, goes on. */
  retried(): void {
    this.problems = [];
    this.gaps = [];
    this.#wasEnded = false;
    this.status = "queued";
    this.reopen();
  }

  /** Note how the run stands by another way than its stream. */
  heard(status: string): void {
    if (this.isOver || status === this.status) return;
    this.reopen();
    // What was heard may be older than the stream, which alone tells that a run that waited goes on.
    if (this.status !== "interrupted" || ENDED.has(status)) this.status = status;
  }

  apply(event: RunEvent): void {
    if (event.id === null || event.id <= this.lastId) return;
    this.lastId = event.id;
    this.version += 1;
    this.isTold = event.type === "final_session_state";
    this.#take(event);
  }

  #take(event: RunEvent): void {
    // What has ended stays so, also while it is told from the beginning.
    if (BEGINS.has(event.type) && !this.isOver) this.status = "running";
    switch (event.type) {
      case "run":
        // Also a run that waits for another one has begun to tell.
        if (this.status === "interrupted" || this.#wasEnded) this.status = "queued";
        if (this.#wasEnded) {
          this.problems = [];
          this.gaps = [];
          this.#wasEnded = false;
        }
        this.#goOn();
        this.#since = event.at ?? null;
        break;
      case "start_of_workflow":
        this.question ||= textOf(event.input.at(-1));
        break;
      case "final_session_state":
        // Small talk has no workflow: the question stands before its answer.
        this.question ||= textOf(event.messages.at(-2));
        break;
      case "plan":
        this.plan = { title: event.title, steps: event.steps };
        this.#turns.plan(event.steps);
        break;
      case "artifact":
        this.#keep(event);
        break;
      case "interrupt":
        this.waiting = event;
        break;
      case "error":
        this.problems.push({ code: event.code, message: event.message });
        break;
      case "run_status":
        this.status = event.status;
        this.gaps = event.gaps ?? [];
        this.#wasEnded = this.isOver;
        if (this.isOver) this.#end();
        this.#worked = this.worked(event.at ?? 0) ?? 0;
        this.#since = null;
        break;
      case "browser_state":
        this.film.look(event);
        break;
      case "browser_step":
        this.film.step(event);
        this.#work(event);
        break;
      default:
        this.#work(event);
    }
  }

  /** What it waited for is part of its work by now. */
  #goOn(): void {
    if (this.waiting) this.#turns.waited(this.waiting);
    this.waiting = null;
  }

  #end(): void {
    this.#goOn();
    this.#turns.end();
  }

  #work(event: RunEvent): void {
    if (event.type === "usage") this.tokens += event.input_tokens + event.output_tokens;
    this.#turns.take(event);
    if (event.type === "message" && SPEAKERS.has(this.turns.at(-1)?.agent ?? "")) this.#answer = this.#turns.newest;
  }

  #keep(artifact: ArtifactLink): void {
    const at = this.#kept.get(artifact.artifact_id) ?? this.artifacts.length;
    this.#kept.set(artifact.artifact_id, at);
    this.artifacts[at] = artifact;
    this.#turns.file(artifact);
  }

  #lastSaid(): Said | null {
    for (let at = this.turns.length - 1; at >= 0; at -= 1) {
      const said = this.turns[at]!.parts.findLast((part) => part.kind === "said" && part.content !== "");
      if (said) return said as Said;
    }
    return null;
  }
}

/** The words of a message, whose content may be parts. */
export function textOf(message: ChatMessage | undefined): string {
  if (!message) return "";
  if (typeof message.content === "string") return message.content;
  return message.content.map((part) => part.text ?? "").join("\n");
}
