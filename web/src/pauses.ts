import type { Interrupt } from "./events";
import type { CallOutcome, PausePart, Turn } from "./parts";

interface Open {
  pause: PausePart;
  turn: Turn;
  tool: string;
}

/** The outcomes of calls that the user was asked about; the stream only shows those that are executed. */
export class Pauses {
  /** The newest question about a call by tool and arguments. */
  #byCall = new Map<string, Open>();
  /** The open ones: as many as wait in one pause. */
  #open = new Set<Open>();

  /** Record what `turn` waited for when the run continues. */
  add(turn: Turn, asked: Interrupt): void {
    const pause: PausePart = { kind: "pause", asked, outcome: null, version: 0 };
    turn.parts.push(pause);
    turn.version += 1;
    if (asked.kind !== "tool_approval") return;
    const { tool_name: tool, tool_input: input } = asked.payload;
    const open = { pause, turn, tool: String(tool) };
    this.#byCall.set(keyOf(open.tool, input), open);
    this.#open.add(open);
  }

  /** Record an executed call, with its original arguments or those edited by the user. */
  call(tool: string, input: Record<string, unknown>): void {
    const key = keyOf(tool, input);
    const same = this.#byCall.get(key);
    this.#byCall.delete(key);
    if (same) return this.#settle(same, "made");
    for (const one of this.#open) if (one.tool === tool) return this.#settle(one, "edited");
  }

  /** Record the end of one turn or all: calls without an event were not executed. */
  end(ended: Turn | null): void {
    for (const one of this.#open) if (ended === null || isSameWork(one.turn, ended)) this.#settle(one, "left");
  }

  #settle(open: Open, outcome: CallOutcome): void {
    this.#open.delete(open);
    open.pause.outcome = outcome;
    open.pause.version += 1;
    open.turn.version += 1;
  }
}

/** Whether two turns are of the same member and step: after a wait, a member continues in another turn. */
function isSameWork(one: Turn, other: Turn): boolean {
  return one.agent === other.agent && one.step?.id === other.step?.id;
}

function keyOf(tool: string, input: unknown): string {
  return `${tool} ${JSON.stringify(input)}`;
}
