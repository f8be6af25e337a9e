import type { ArtifactLink, BrowserStep, ChatMessage, Interrupt, RunEvent, Step } from "./events";

/** What a member says in one turn of its model. */
export interface Said {
  kind: "said";
  content: string;
  reasoning: string;
}

/** A tool at work; `result` is null until it has answered. */
export interface Call {
  kind: "call";
  id: string;
  tool: string;
  input: Record<string, unknown>;
  output: string;
  result: string | null;
  /** Of a call of the browser: its steps, each as it was told last. */
  steps: BrowserStep[];
}

/** One stretch of work of one member. `version` changes with all that is in it. */
export interface Turn {
  id: string;
  agent: string;
  isOpen: boolean;
  parts: (Said | Call)[];
  tokens: number;
  seconds: number;
  version: number;
}

export interface Problem {
  code: string;
  message: string;
}

export interface BrowserView {
  url: string;
  title: string;
  screenshot: string | null;
}

/** Who speaks to the person; what the others say belongs to the work. */
const SPEAKERS = new Set(["coordinator", "reporter"]);
const ENDED = new Set(["completed", "failed", "cancelled", "budget_exhausted"]);
/** As much of a call's live output as is shown: its last characters. */
const SHOWN_OUTPUT = 20_000;

/**
 * One run as its events tell it: each is taken in constant time, and whoever shows the run compares `version`.
 * Events with a number that was seen before are passed over, so that a stream may be told again.
 */
export class RunModel {
  question: string;
  status = "queued";
  turns: Turn[] = [];
  plan: { title: string; steps: Step[] } | null = null;
  waiting: Interrupt | null = null;
  problems: Problem[] = [];
  artifacts: ArtifactLink[] = [];
  browser: BrowserView | null = null;
  lastId = 0;
  version = 0;
  /** Whether the newest stretch of the stream was told to its last event. */
  isTold = false;
  #answer: Said | null = null;
  #message = "";
  #calls = new Map<string, { call: Call; turn: Turn }>();

  constructor(
    readonly runId: string,
    question = "",
  ) {
    this.question = question;
  }

  get isOver(): boolean {
    return ENDED.has(this.status);
  }

  get isAtWork(): boolean {
    return this.status === "queued" || this.status === "running";
  }

  get tokens(): number {
    return this.turns.reduce((sum, turn) => sum + turn.tokens, 0);
  }

  /** What was said to the person: by the coordinator or the reporter, else by whoever spoke last. */
  get answer(): Said | null {
    return this.#answer ?? (this.status === "completed" ? this.#lastSaid() : null);
  }

  /** Note that the run was answered or cancelled, so that its stream has more to tell. */
  reopen(): void {
    this.isTold = false;
    this.version += 1;
  }

  apply(event: RunEvent): void {
    if (event.id === null || event.id <= this.lastId) return;
    this.lastId = event.id;
    this.version += 1;
    this.isTold = event.type === "final_session_state";
    this.#take(event);
  }

  #take(event: RunEvent): void {
    switch (event.type) {
      case "run":
        this.status = "running";
        this.waiting = null;
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
        break;
      case "artifact":
        this.artifacts = [...this.artifacts.filter((one) => one.artifact_id !== event.artifact_id), event];
        break;
      case "interrupt":
        this.waiting = event;
        break;
      case "error":
        this.problems.push({ code: event.code, message: event.message });
        break;
      case "run_status":
        this.status = event.status;
        break;
      case "browser_state":
        this.browser = { url: event.url, title: event.title, screenshot: event.screenshot };
        break;
      default:
        this.#work(event);
    }
  }

  #work(event: RunEvent): void {
    if (event.type === "start_of_agent") {
      const open = { isOpen: true, parts: [], tokens: 0, seconds: 0, version: 0 };
      this.turns.push({ id: event.agent_id, agent: event.agent_name, ...open });
      return;
    }
    if (event.type === "tool_output" || event.type === "tool_call_result" || event.type === "browser_step") {
      this.#hear(event);
      return;
    }
    const turn = this.turns.at(-1);
    if (!turn) return;
    turn.version += 1;
    switch (event.type) {
      case "end_of_agent":
        turn.isOpen = false;
        break;
      case "message":
        this.#say(turn, event.message_id, event.delta);
        break;
      case "tool_call":
        this.#begin(turn, event.tool_call_id, event.tool_name, event.tool_input);
        break;
      case "usage":
        turn.tokens += event.input_tokens + event.output_tokens;
        turn.seconds += event.seconds;
        break;
    }
  }

  #say(turn: Turn, messageId: string, delta: { content?: string; reasoning_content?: string }): void {
    let said = turn.parts.at(-1);
    if (said?.kind !== "said" || this.#message !== messageId) {
      said = { kind: "said", content: "", reasoning: "" };
      turn.parts.push(said);
      this.#message = messageId;
      if (SPEAKERS.has(turn.agent)) this.#answer = said;
    }
    said.content += delta.content ?? "";
    said.reasoning += delta.reasoning_content ?? "";
  }

  #begin(turn: Turn, id: string, tool: string, input: Record<string, unknown>): void {
    const call: Call = { kind: "call", id, tool, input, output: "", result: null, steps: [] };
    turn.parts.push(call);
    this.#calls.set(id, { call, turn });
  }

  #hear(event: RunEvent & { type: "tool_output" | "tool_call_result" | "browser_step" }): void {
    const known = this.#calls.get(event.tool_call_id);
    if (!known) return;
    known.turn.version += 1;
    if (event.type === "tool_call_result") known.call.result = event.tool_result;
    else if (event.type === "browser_step") {
      // The newest of a number is the whole step; an older one is seldom told again.
      const at = known.call.steps.findLastIndex((step) => step.number === event.number);
      known.call.steps = known.call.steps.toSpliced(at < 0 ? known.call.steps.length : at, at < 0 ? 0 : 1, event);
    } else known.call.output = (known.call.output + event.text).slice(-SHOWN_OUTPUT);
  }

  #lastSaid(): Said | null {
    for (const turn of this.turns.toReversed()) {
      const said = turn.parts.findLast((part) => part.kind === "said" && part.content !== "");
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
