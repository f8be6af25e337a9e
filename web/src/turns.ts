import type { ArtifactLink, BrowserStep, Interrupt, RunEvent, Step } from "./events";
import { RUNS_CODE } from "./results";
import { type Waited, Waits } from "./waits";

/** What a member says in one turn of its model. */
export interface Said {
  kind: "said";
  content: string;
  reasoning: string;
  version: number;
}

/** A piece of what a call that is under way has printed. */
export interface Printed {
  stream: string;
  text: string;
}

/** A tool at work; `result` is null until it has answered. Times are Unix seconds, null where none was told. */
export interface Call {
  kind: "call";
  id: string;
  tool: string;
  input: Record<string, unknown>;
  printed: Printed[];
  result: string | null;
  begun: number | null;
  ended: number | null;
  /** Of a call of the browser: its steps, each as it was told last. */
  steps: BrowserStep[];
  /** The files that its result names, once they are told. */
  files: ArtifactLink[];
  version: number;
}

/** One stretch of work of one member. `version` changes with all that is in it. */
export interface Turn {
  id: string;
  agent: string;
  /** What it works at; null for who has no step, such as the planner. */
  step: { id: number; title: string } | null;
  isOpen: boolean;
  parts: (Said | Call | Waited)[];
  tokens: number;
  seconds: number;
  begun: number | null;
  ended: number | null;
  version: number;
}

/** As much of a call's live output as is kept: its last characters. */
const KEPT_OUTPUT = 20_000;
/** How often it may change between stdout and stderr. */
const KEPT_PIECES = 500;
/** The lines of a result that name files. */
const NAMES_FILES = /^\[(?:figures drawn|files written): (.*)\]$/gm;
const LONGEST_LIST = 5_000;

/** Who did what in a run, in the order in which it was told. Each event is taken in constant time. */
export class Turns {
  readonly all: Turn[] = [];
  calls = 0;
  /** What a member says right now, or said last. */
  newest: Said | null = null;
  #message = "";
  #newest = new Map<string, Turn>();
  #byId = new Map<string, { call: Call; turn: Turn }>();
  #byFile = new Map<string, { call: Call; turn: Turn }>();
  #begun: { id: number; title: string; agent: string }[] = [];
  #standing = new Map<number, string>();
  #waits = new Waits();

  /** Note which steps were begun: the next turns of their members work at them. */
  plan(steps: readonly Step[]): void {
    for (const { id, title, agent_name, status } of steps) {
      if (status === "in_progress" && this.#standing.get(id) !== status) this.#begun.push({ id, title, agent: agent_name });
      this.#standing.set(id, status);
    }
  }

  /** Put a file under the call whose result names it. */
  file(artifact: ArtifactLink): void {
    const known = this.#byFile.get(artifact.name);
    if (!known || known.call.files.some((one) => one.artifact_id === artifact.artifact_id)) return;
    known.call.files.push(artifact);
    changed(known.call, known.turn);
  }

  /** Note what the run waited for, which goes on now: who has worked last asked for it. */
  waited(asked: Interrupt): void {
    const turn = this.all.at(-1);
    if (turn) this.#waits.add(turn, asked);
  }

  /** Note that the run is over: nothing more is called. */
  end(): void {
    this.#waits.end(null);
  }

  take(event: RunEvent): void {
    switch (event.type) {
      case "start_of_agent":
        this.#open(event.agent_id, event.agent_name, event.at ?? null);
        return;
      case "tool_output":
      case "tool_call_result":
      case "browser_step":
        this.#hear(event);
        return;
    }
    const turn = this.all.at(-1);
    if (!turn) return;
    switch (event.type) {
      case "end_of_agent":
        turn.isOpen = false;
        turn.ended = event.at ?? null;
        this.#waits.end(event.agent_name);
        break;
      case "message":
        this.#say(turn, event.message_id, event.delta);
        break;
      case "tool_call":
        this.#begin(turn, event);
        break;
      case "usage":
        if (event.agent_name !== turn.agent) return;
        turn.tokens += event.input_tokens + event.output_tokens;
        turn.seconds += event.seconds;
        break;
      default:
        return;
    }
    turn.version += 1;
  }

  #open(id: string, agent: string, begun: number | null): void {
    const turn: Turn = { id, agent, step: this.#stepOf(agent), isOpen: true, parts: [], tokens: 0, seconds: 0, begun, ended: null, version: 0 };
    this.all.push(turn);
    this.#newest.set(agent, turn);
  }

  #stepOf(agent: string): Turn["step"] {
    const at = this.#begun.findIndex((one) => one.agent === agent);
    const begun = at < 0 ? undefined : this.#begun.splice(at, 1)[0];
    if (begun) return { id: begun.id, title: begun.title };
    // A member that begins again after a crash or a pause works at the step that it had.
    const again = this.#newest.get(agent)?.step;
    return again && this.#standing.get(again.id) === "in_progress" ? again : null;
  }

  #say(turn: Turn, messageId: string, delta: { content?: string; reasoning_content?: string }): void {
    let said = turn.parts.at(-1);
    if (said?.kind !== "said" || this.#message !== messageId) {
      said = { kind: "said", content: "", reasoning: "", version: 0 };
      turn.parts.push(said);
      this.#message = messageId;
    }
    said.content += delta.content ?? "";
    said.reasoning += delta.reasoning_content ?? "";
    said.version += 1;
    this.newest = said;
  }

  #begin(turn: Turn, event: RunEvent & { type: "tool_call" }): void {
    const { tool_call_id: id, tool_name: tool, tool_input: input, at: begun = null } = event;
    const none = { printed: [], result: null, ended: null, steps: [], files: [], version: 0 };
    const call: Call = { kind: "call", id, tool, input, begun, ...none };
    turn.parts.push(call);
    this.#waits.call(tool, input);
    this.calls += 1;
    this.#byId.set(id, { call, turn });
  }

  #hear(event: RunEvent & { type: "tool_output" | "tool_call_result" | "browser_step" }): void {
    const known = this.#byId.get(event.tool_call_id);
    if (!known) return;
    const { call, turn } = known;
    if (event.type === "browser_step") place(call.steps, event);
    else if (event.type === "tool_output") print(call.printed, event);
    else {
      call.result = event.tool_result;
      call.ended = event.at ?? null;
      // What others return may be a stranger's words.
      if (RUNS_CODE.has(call.tool)) for (const name of filesOf(call.result)) this.#byFile.set(name, known);
    }
    changed(call, turn);
  }
}

function changed(call: Call, turn: Turn): void {
  call.version += 1;
  turn.version += 1;
}

/** The newest of a number is the whole step; one that is told again is among the last. */
function place(steps: BrowserStep[], step: BrowserStep): void {
  let at = steps.length;
  while (at > 0 && steps[at - 1]!.number >= step.number) at -= 1;
  steps.splice(at, steps[at]?.number === step.number ? 1 : 0, step);
}

function print(printed: Printed[], { stream, text }: Printed): void {
  const last = printed.at(-1);
  if (last?.stream === stream) last.text = (last.text + text).slice(-KEPT_OUTPUT);
  else printed.push({ stream, text: text.slice(-KEPT_OUTPUT) });
  if (printed.length > KEPT_PIECES) printed.shift();
  let over = printed.reduce((sum, one) => sum + one.text.length, 0) - KEPT_OUTPUT;
  for (let first = printed[0]!; over > 0; first = printed[0]!) {
    const cut = Math.min(over, first.text.length);
    first.text = first.text.slice(cut);
    if (first.text === "") printed.shift();
    over -= cut;
  }
}

/** The names of the files that a result says were drawn or written; they are its last lines. */
export function filesOf(result: string): string[] {
  const lists = [...result.slice(-LONGEST_LIST).matchAll(NAMES_FILES)].map((found) => found[1]!);
  return lists.flatMap((list) => list.split(", ").map((path) => path.slice(path.lastIndexOf("/") + 1)));
}
