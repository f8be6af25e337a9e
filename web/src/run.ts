import type { ArtifactLink, ChatMessage, Gap, GapReview, Interrupt, RunEvent, Step, StepQuestion } from "./events";
import type { UsageReported } from "./events.generated";
import type { Finding } from "./findings";
import type { TextPart, Turn } from "./parts";
import { Recording } from "./recording";
import { SEARCHES } from "./results";
import { Turns } from "./turns";

export interface Problem {
  code: string;
  message: string;
}

/** A message of the user to the run, and the lead's reply; null until there is one. */
export interface Exchange {
  id: string;
  content: string;
  reply: string | null;
  /** When it was accepted, in Unix seconds; null if unknown. */
  at: number | null;
  /** The run that the message becomes; null if it belongs to this run. */
  nextRun: string | null;
  /** The number of the newest event when it was written, and when it was replied to; null until then. */
  after: number;
  repliedAfter: number | null;
}

/** What the user answered to a question of the run; `asked` is null where the question is unknown. */
export interface Reply {
  asked: Interrupt | null;
  answer: unknown;
  /** What the lead said to it, if the answer was a question about a plan, or the plan stayed the same. */
  reply: string | null;
  /** The number of the newest event when it was given. */
  after: number;
}

/** The agents whose texts are answers; texts of others are shown as work. */
const SPEAKERS = new Set(["coordinator", "reporter"]);
/** Events that show that an agent is working. */
const BEGINS = new Set(["start_of_workflow", "start_of_agent"]);
const MOVE_FILES = new Set(["move_file", "copy_file", "delete_file", "file_operations", "undo_file_operations"]);
/** The tools whose calls find or read sources. */
const FIND_SOURCES = new Set([...SEARCHES, "crawl_tool", "browser"]);
const ENDED = new Set(["completed", "failed", "cancelled", "budget_exhausted"]);

/**
 * The state of a run, built from its events in constant time each. Views compare `version`. Events with a number that
 * was received before are ignored, so that a stream can be read again.
 */
export class RunModel {
  question: string;
  status: string;
  plan: { title: string; steps: Step[] } | null = null;
  /** The draft of the plan: its steps so far. */
  draft: { title: string; steps: Step[] } | null = null;
  /** What the run waits for when it is interrupted: the questions that its steps left open, oldest first. */
  waits: Interrupt[] = [];
  /** The open questions of steps while others go on, oldest first. */
  questions: StepQuestion[] = [];
  problems: Problem[] = [];
  /** The steps whose results are missing in the answer. */
  gaps: Gap[] = [];
  /** What was found missing before the report of a deep run, oldest first. */
  reviews: GapReview[] = [];
  /** The files that it made or changed. The texts of pages that it read are sources, and not among them. */
  artifacts: ArtifactLink[] = [];
  /** Increases when there may be more sources. */
  readings = 0;
  threadId = "";
  /** When it was accepted, in Unix seconds; null without times. */
  askedAt: number | null = null;
  /** Whether a tool has moved, copied or deleted files. */
  movesFiles = false;
  /** The user's answers to its questions. */
  replies: Reply[] = [];
  /** The user's messages to the run. */
  exchanges: Exchange[] = [];
  tokens = 0;
  /** The models that have answered, in the order of their first answer. */
  readonly models = new Set<string>();
  /** Models that took no effort, and worked as they do by themselves. */
  readonly effortless = new Set<string>();
  readonly recording = new Recording();
  lastId = 0;
  /** The time of the newest event; null without times. */
  heard: number | null = null;
  version = 0;
  /** What is away while the run waits for it, and until when it waits at most; null otherwise. */
  outage: { waitingFor: "model" | "store"; until: number } | null = null;
  /** Whether the last event of the newest segment has been received. */
  isComplete = false;
  #answer: TextPart | null = null;
  #answerSince = Infinity;
  /** The turn that used the browser last. */
  #browsing: Turn | undefined;
  readonly #asked = new Map<string, Interrupt>();
  #turns = new Turns();
  #artifactIndexes = new Map<string, number>();
  /** The start of the current segment, and the duration of the earlier ones, in seconds. */
  #since: number | null = null;
  #worked = 0;
  /** Whether the stream has ended once; a further `run` event then starts a retry. */
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

  /** The newest question that the interrupted run waits for. */
  get waiting(): Interrupt | null {
    return this.waits.at(-1) ?? null;
  }

  /** What can be answered now, oldest first. */
  get forms(): readonly (Interrupt | StepQuestion)[] {
    if (this.status === "interrupted") return this.waits;
    return this.isAtWork ? this.questions : [];
  }

  get turns(): readonly Turn[] {
    return this.#turns.all;
  }

  /** What the members of a step noted. */
  findingsOf(stepId: number): readonly Finding[] {
    return this.#turns.findings.get(stepId) ?? [];
  }

  /** The number of tool calls. */
  get calls(): number {
    return this.#turns.calls;
  }

  /** Whether the member that used the browser last is still at work. */
  get isBrowsing(): boolean {
    return this.isAtWork && this.#browsing?.isOpen === true;
  }

  /** The working time of the run at `now`, without waiting for the user; null without times. */
  worked(now: number): number | null {
    if (this.#since !== null) return this.#worked + Math.max(0, now - this.#since);
    return this.#worked > 0 ? this.#worked : null;
  }

  /** The answer: the text of the coordinator or reporter, else the newest text. */
  get answer(): TextPart | null {
    return this.#answer ?? (this.status === "completed" ? this.#lastText() : null);
  }

  /** The number of the event with which the text of the answer began: what was written before it stands above it. */
  get answerSince(): number {
    return this.#answerSince;
  }

  /** Mark that the stream has more events than were received. */
  reopen(): void {
    this.isComplete = false;
    this.version += 1;
  }

  /** Mark that all events were received. */
  close(): void {
    this.isComplete = true;
    this.version += 1;
  }

  /** Mark an interrupt as answered, unless the stream has done so already. */
  answered(interrupt: Interrupt): void {
    // By identity: the same id may ask again.
    if (this.questions.some((one) => one === interrupt)) this.#resumed(interrupt);
    else if (this.waits.some((one) => one === interrupt)) this.#continue();
    this.reopen();
  }

  /** Mark an interrupted run as continued, by whichever answer. */
  #continue(): void {
    this.#goOn();
    if (!this.isOver) this.status = "queued";
  }

  /** Add a message of the user that was accepted; the stream reports it, too. */
  wrote(messageId: string, content: string): void {
    this.#write(messageId, content);
    this.reopen();
  }

  /** Set the question that the run begins with, before its stream has it. */
  ask(question: string): void {
    if (this.question) return;
    this.question = question;
    this.version += 1;
  }

  #write(id: string, content: string, at: number | null = null): void {
    const known = this.exchanges.find((one) => one.id === id);
    if (known) known.at ??= at;
    else this.exchanges = [...this.exchanges, { id, content, reply: null, at, nextRun: null, after: this.lastId, repliedAfter: null }];
  }

  /** Mark that a run that had ended continues. */
  retried(): void {
    this.problems = [];
    this.gaps = [];
    this.#wasEnded = false;
    this.status = "queued";
    this.reopen();
  }

  /** Set the status that was read by another way than the stream. */
  updateStatus(status: string): void {
    // A run that still waits may have been answered meanwhile, and wait for something else now.
    if (status === this.status && status !== "interrupted") return;
    this.reopen();
    // One that had ended may have been retried: its stream says so.
    if (this.isOver) return;
    // The status may be older than the stream, and only the stream shows that a waiting run continues.
    if (this.status !== "interrupted" || ENDED.has(status)) this.status = status;
  }

  apply(event: RunEvent): void {
    if (event.id === null || event.id <= this.lastId) return;
    this.lastId = event.id;
    this.heard = event.at ?? this.heard;
    this.version += 1;
    this.isComplete = event.type === "final_session_state";
    this.#take(event);
  }

  #take(event: RunEvent): void {
    // A run that has ended stays so while its events are read from the beginning.
    if (BEGINS.has(event.type) && !this.isOver) {
      this.status = "running";
      // The next process may go on with a run that waited.
      this.outage = null;
    }
    switch (event.type) {
      case "run":
        this.threadId = event.thread_id;
        this.askedAt ??= event.at ?? null;
        // A run that waits for another one sends this event, too.
        if (this.status === "interrupted" || this.#wasEnded) this.status = "queued";
        if (this.#wasEnded) {
          this.problems = [];
          this.gaps = [];
          this.#wasEnded = false;
        }
        this.#goOn();
        this.#since = event.at ?? null;
        break;
      case "start_of_agent":
        // The coordinator's text before a hand-off was only its announcement.
        if (event.agent_name === "planner" && this.turns.at(-1)?.agent === "coordinator") this.#answers(null);
        this.#work(event);
        break;
      case "end_of_agent":
        this.draft = null;
        this.questions = this.questions.filter((one) => one.agent_id !== event.agent_id);
        this.#work(event);
        break;
      case "start_of_workflow":
        this.question ||= textOf(event.input.at(-1));
        break;
      case "final_session_state":
        // Small talk has no workflow; its question is in the messages, before the answer.
        this.question ||= textOf(event.messages.at(-2));
        break;
      case "plan":
        this.draft = event.draft ? { title: event.title, steps: event.steps } : null;
        if (event.draft) break;
        this.plan = { title: event.title, steps: event.steps };
        this.#turns.plan(event.steps);
        break;
      case "lead_decision":
        this.#turns.addDecision(event);
        break;
      case "gap_review":
        this.reviews = [...this.reviews, event];
        break;
      case "artifact":
        this.#keep(event);
        break;
      case "interrupt":
        this.#asked.set(event.interrupt_id, event);
        this.waits = [...this.waits.filter((one) => one.interrupt_id !== event.interrupt_id), event];
        break;
      case "step_interrupt":
        this.#asked.set(event.interrupt_id, event);
        this.questions = [...this.questions.filter((one) => one.interrupt_id !== event.interrupt_id), event];
        break;
      case "step_resumed":
        this.#resumed(this.questions.find((one) => one.interrupt_id === event.interrupt_id));
        break;
      case "user_answer":
        this.replies.push({ asked: this.#asked.get(event.interrupt_id) ?? null, answer: event.answer, reply: null, after: this.lastId });
        break;
      case "user_message":
        this.#write(event.message_id, event.content, event.at ?? null);
        break;
      case "user_message_answer":
        this.#reply(event);
        break;
      case "error":
        this.problems.push({ code: event.code, message: event.message });
        break;
      case "effort_not_used":
        this.effortless.add(event.model);
        break;
      case "run_waiting":
        this.outage = { waitingFor: event.waiting_for, until: event.until };
        if (!this.isOver) this.status = "queued";
        break;
      case "run_continued":
        this.outage = null;
        if (!this.isOver) this.status = "running";
        break;
      case "run_status":
        this.outage = null;
        this.status = event.status;
        this.gaps = event.gaps ?? [];
        this.#wasEnded = this.isOver;
        if (this.isOver) this.#end();
        this.#worked = this.worked(event.at ?? 0) ?? 0;
        this.#since = null;
        break;
      case "browser_state":
        this.recording.look(event);
        this.#browsing = this.#turns.of(event);
        break;
      case "browser_step":
        this.recording.step(event);
        this.#browsing = this.#turns.of(event);
        this.#work(event);
        break;
      case "tool_call":
        this.movesFiles ||= MOVE_FILES.has(event.tool_name);
        this.#work(event);
        break;
      case "tool_call_result":
        if (FIND_SOURCES.has(event.tool_name)) this.readings += 1;
        this.#work(event);
        break;
      default:
        this.#work(event);
    }
  }

  #reply({ message_id, content, run_id }: RunEvent & { type: "user_message_answer" }): void {
    const answered = { reply: content, nextRun: run_id ?? null, repliedAfter: this.lastId };
    const asked = this.replies.at(-1);
    // What was said about a plan came as the answer to its review.
    if (asked && !this.exchanges.some((one) => one.id === message_id)) asked.reply = content;
    this.exchanges = this.exchanges.map((one) => (one.id === message_id ? { ...one, ...answered } : one));
  }

  /** The answered question of a step is now part of its work. */
  #resumed(asked: Interrupt | undefined): void {
    if (!asked) return;
    this.questions = this.questions.filter((one) => one !== asked);
    this.#turns.addPause(asked);
    this.version += 1;
  }

  /** The answered question is now part of the work. */
  #goOn(): void {
    this.questions = [];
    for (const asked of this.waits) this.#turns.addPause(asked);
    this.waits = [];
  }

  #end(): void {
    this.#goOn();
    this.#turns.end();
  }

  #work(event: RunEvent): void {
    if (event.type === "usage") this.#count(event);
    this.#turns.take(event);
    if (event.type === "message" && SPEAKERS.has(this.#turns.of(event)?.agent ?? "")) this.#answers(this.#turns.newest);
  }

  #answers(text: TextPart | null): void {
    if (text !== this.#answer) this.#answerSince = Infinity;
    this.#answer = text;
    if (text?.content) this.#answerSince = Math.min(this.#answerSince, this.lastId);
  }

  #count({ input_tokens, output_tokens, model }: UsageReported): void {
    this.tokens += input_tokens + output_tokens;
    if (model) this.models.add(model);
  }

  #keep(artifact: ArtifactLink): void {
    if (artifact.source !== undefined) return void (this.readings += 1);
    const at = this.#artifactIndexes.get(artifact.artifact_id) ?? this.artifacts.length;
    this.#artifactIndexes.set(artifact.artifact_id, at);
    this.artifacts[at] = artifact;
    this.#turns.file(artifact);
  }

  #lastText(): TextPart | null {
    for (let at = this.turns.length - 1; at >= 0; at -= 1) {
      const text = this.turns[at]!.parts.findLast((part) => part.kind === "text" && part.content !== "");
      if (text) return text as TextPart;
    }
    return null;
  }
}

/** The text of a message, whose content may be a list of parts. */
export function textOf(message: ChatMessage | undefined): string {
  if (!message) return "";
  if (typeof message.content === "string") return message.content;
  return message.content.map((part) => part.text ?? "").join("\n");
}
