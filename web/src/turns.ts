import type { ArtifactLink, BrowserStep, Decision, Interrupt, RunEvent, Step } from "./events";
import { type Finding, findingOf } from "./findings";
import type { Call, OutputPiece, TextPart, Turn } from "./parts";
import { Pauses } from "./pauses";
import { RUNS_CODE } from "./results";

/** The number of last characters of live output that are kept. */
const MAX_OUTPUT_LENGTH = 20_000;
/** The maximum number of pieces that alternate between stdout and stderr. */
const MAX_OUTPUT_PIECES = 500;
/** The lines of a result that name files. */
const NAMES_FILES = /^\[(?:figures drawn|files written): (.*)\]$/gm;
const MAX_LIST_LENGTH = 5_000;

/** The turns of a run in order. Each event is processed in constant time. */
export class Turns {
  readonly all: Turn[] = [];
  calls = 0;
  /** What was noted, by the ids of steps. */
  readonly findings = new Map<number, Finding[]>();
  /** The present or newest text of a member. */
  newest: TextPart | null = null;
  /** The open turns by id; members that work concurrently have one each. */
  #open = new Map<string, Turn>();
  #messages = new Map<Turn, string>();
  #newest = new Map<string, Turn>();
  #titles = new Map<number, string>();
  #byId = new Map<string, { call: Call; turn: Turn }>();
  #byFile = new Map<string, { call: Call; turn: Turn }>();
  #begun: { id: number; title: string; agent: string }[] = [];
  #standing = new Map<number, Step["status"]>();
  #waits = new Pauses();

  /** Record the started steps: the next turns of their members belong to them. */
  plan(steps: readonly Step[]): void {
    for (const { id, title, agent_name, status } of steps) {
      this.#titles.set(id, title);
      if (isDoneAgain(this.#standing.get(id), status)) this.#outdate(id);
      if (status === "in_progress" && this.#standing.get(id) !== status) this.#begun.push({ id, title, agent: agent_name });
      this.#standing.set(id, status);
    }
  }

  /** Mark the last text of a step that is done again. */
  #outdate(stepId: number): void {
    const turn = this.all.findLast((one) => one.step?.id === stepId);
    if (turn) outdate(turn);
  }

  /** Add a file to the call whose result names it. */
  file(artifact: ArtifactLink): void {
    const known = this.#byFile.get(artifact.name);
    if (!known || known.call.files.some((one) => one.artifact_id === artifact.artifact_id)) return;
    known.call.files.push(artifact);
    changed(known.call, known.turn);
  }

  /** Record what the run waited for, at the turn of the call, or else at the newest turn. */
  addPause(asked: Interrupt): void {
    const turn = this.all.findLast((one) => one.parts.some((part) => part.kind === "call" && isAbout(asked, part))) ?? this.all.at(-1);
    if (turn) this.#waits.add(turn, asked);
  }

  /** Add a decision of the lead to the newest turn of the failed step. */
  addDecision(decision: Decision): void {
    const turn = this.all.findLast((one) => one.step?.id === decision.step_id) ?? this.all.at(-1);
    if (!turn) return;
    turn.parts.push({ kind: "decision", decision });
    turn.version += 1;
  }

  /** Mark the end of the run: open calls will not return. */
  end(): void {
    this.#waits.end(null);
  }

  take(event: RunEvent): void {
    switch (event.type) {
      case "start_of_agent":
        this.#start(event);
        return;
      case "tool_output":
      case "tool_call_result":
      case "browser_step":
        this.#hear(event);
        return;
    }
    const turn = this.of(event);
    if (!turn) return;
    turn.heard = event.at ?? turn.heard;
    if (event.type === "model_unreachable") {
      // Without a turn it is the lead's.
      if (event.agent_id === turn.id) turn.outage = { attempt: event.attempt, left: event.left_seconds };
    } else {
      turn.outage = null;
    }
    switch (event.type) {
      case "end_of_agent":
        turn.isOpen = false;
        turn.ended = event.at ?? null;
        this.#open.delete(turn.id);
        this.#waits.end(turn);
        break;
      case "message":
        this.#say(turn, event.message_id, event.delta);
        break;
      case "message_replaced":
        replace(turn);
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

  /** The turn of an event; events without a turn id are in sequence. */
  of(event: RunEvent): Turn | undefined {
    const id = "agent_id" in event ? event.agent_id : undefined;
    return (id === undefined ? undefined : this.#open.get(id)) ?? this.all.at(-1);
  }

  #start(event: RunEvent & { type: "start_of_agent" }): void {
    const { agent_id: id, agent_name: agent, at: begun = null } = event;
    const step = this.#stepOf(agent, event.step_id);
    const turn: Turn = { id, agent, step, isOpen: true, parts: [], tokens: 0, seconds: 0, begun, ended: null, heard: begun, outage: null, version: 0 };
    this.all.push(turn);
    this.#open.set(id, turn);
    this.#newest.set(agent, turn);
  }

  #stepOf(agent: string, stepId?: number): Turn["step"] {
    const title = stepId === undefined ? undefined : this.#titles.get(stepId);
    if (stepId !== undefined && title !== undefined) return { id: stepId, title };
    // An earlier version did not send the step.
    const at = this.#begun.findIndex((one) => one.agent === agent);
    const begun = at < 0 ? undefined : this.#begun.splice(at, 1)[0];
    if (begun) return { id: begun.id, title: begun.title };
    // A member that restarts after a crash or a pause continues its step.
    const again = this.#newest.get(agent)?.step;
    return again && this.#standing.get(again.id) === "in_progress" ? again : null;
  }

  #say(turn: Turn, messageId: string, delta: { content?: string; reasoning_content?: string }): void {
    let text = turn.parts.at(-1);
    if (text?.kind !== "text" || this.#messages.get(turn) !== messageId) {
      // A member whose answer calls no tool is asked again only if the user wrote meanwhile.
      if (turn.step && text?.kind === "text" && text.content) outdate(turn);
      text = { kind: "text", content: "", reasoning: "", version: 0 };
      turn.parts.push(text);
      this.#messages.set(turn, messageId);
    }
    text.content += delta.content ?? "";
    text.reasoning += delta.reasoning_content ?? "";
    text.version += 1;
    this.newest = text;
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
    turn.heard = event.at ?? turn.heard;
    if (event.type === "browser_step") place(call.steps, event);
    else if (event.type === "tool_output") print(call.printed, event);
    else {
      call.result = event.tool_result;
      call.ended = event.at ?? null;
      this.#note(call, turn);
      // Results of other tools may contain untrusted text.
      if (RUNS_CODE.has(call.tool)) for (const name of filesOf(call.result)) this.#byFile.set(name, known);
    }
    changed(call, turn);
  }

  #note(call: Call, { step }: Turn): void {
    const finding = findingOf(call);
    if (!finding || !step) return;
    const known = this.findings.get(step.id);
    if (known) known.push(finding);
    else this.findings.set(step.id, [finding]);
  }
}

/** Whether an interrupt is about a call: its approval, or the question that it asks. */
function isAbout({ kind, payload }: Interrupt, { tool, input }: Call): boolean {
  if (kind === "tool_approval") return tool === payload["tool_name"] && JSON.stringify(input) === JSON.stringify(payload["tool_input"]);
  return kind === "question" && typeof payload["question"] === "string" && input["question"] === payload["question"];
}

function isDoneAgain(before: Step["status"] | undefined, now: Step["status"]): boolean {
  return (before === "completed" && (now === "not_started" || now === "in_progress")) || (before === "in_progress" && now === "not_started");
}

function outdate(turn: Turn): void {
  const text = turn.parts.at(-1);
  if (text?.kind !== "text" || text.isReplaced) return;
  text.isOutdated = true;
  text.version += 1;
  turn.version += 1;
}

function replace(turn: Turn): void {
  const text = turn.parts.at(-1);
  if (text?.kind !== "text") return;
  text.isReplaced = true;
  text.version += 1;
}

function changed(call: Call, turn: Turn): void {
  call.version += 1;
  turn.version += 1;
}

/** The newest event of a number is the whole step; repeated ones are near the end. */
function place(steps: BrowserStep[], step: BrowserStep): void {
  let at = steps.length;
  while (at > 0 && steps[at - 1]!.number >= step.number) at -= 1;
  steps.splice(at, steps[at]?.number === step.number ? 1 : 0, step);
}

function print(printed: OutputPiece[], { stream, text }: OutputPiece): void {
  const last = printed.at(-1);
  if (last?.stream === stream) last.text = (last.text + text).slice(-MAX_OUTPUT_LENGTH);
  else printed.push({ stream, text: text.slice(-MAX_OUTPUT_LENGTH) });
  if (printed.length > MAX_OUTPUT_PIECES) printed.shift();
  let over = printed.reduce((sum, one) => sum + one.text.length, 0) - MAX_OUTPUT_LENGTH;
  for (let first = printed[0]!; over > 0; first = printed[0]!) {
    const cut = Math.min(over, first.text.length);
    first.text = first.text.slice(cut);
    if (first.text === "") printed.shift();
    over -= cut;
  }
}

/** The names of the files in the last lines of a result. */
export function filesOf(result: string): string[] {
  const lists = [...result.slice(-MAX_LIST_LENGTH).matchAll(NAMES_FILES)].map((found) => found[1]!);
  return lists.flatMap((list) => list.split(", ").map((path) => path.slice(path.lastIndexOf("/") + 1)));
}
