import type { Interrupt } from "./events";
import type { Turn } from "./turns";

/** What became of the call that a person was asked about; null while that is open, and where it was about no call. */
export type Fate = "made" | "edited" | "left" | null;

/** What the run waited for a person with. */
export interface Waited {
  kind: "waited";
  asked: Interrupt;
  fate: Fate;
  version: number;
}

interface Open {
  waited: Waited;
  turn: Turn;
  tool: string;
}

/** What became of the calls that a person was asked about: the stream tells only which are made. */
export class Waits {
  /** The newest question about a call, by its tool and arguments. */
  #byCall = new Map<string, Open>();
  /** Those of which nothing was heard yet: as many as wait in one pause. */
  #open = new Set<Open>();

  /** Note what `turn` waited for, once the run goes on. */
  add(turn: Turn, asked: Interrupt): void {
    const waited: Waited = { kind: "waited", asked, fate: null, version: 0 };
    turn.parts.push(waited);
    turn.version += 1;
    if (asked.kind !== "tool_approval") return;
    const { tool_name: tool, tool_input: input } = asked.payload;
    const open = { waited, turn, tool: String(tool) };
    this.#byCall.set(keyOf(open.tool, input), open);
    this.#open.add(open);
  }

  /** Take note of a call that is made: with the arguments that were asked about, or with those of the person. */
  call(tool: string, input: Record<string, unknown>): void {
    const key = keyOf(tool, input);
    const same = this.#byCall.get(key);
    this.#byCall.delete(key);
    if (same) return this.#settle(same, "made");
    for (const one of this.#open) if (one.tool === tool) return this.#settle(one, "edited");
  }

  /** Take note that a member has come to its end, or every one: what it was not heard to call it did not call. */
  end(agent: string | null): void {
    for (const one of this.#open) if (agent === null || one.turn.agent === agent) this.#settle(one, "left");
  }

  #settle(open: Open, fate: Fate): void {
    this.#open.delete(open);
    open.waited.fate = fate;
    open.waited.version += 1;
    open.turn.version += 1;
  }
}

function keyOf(tool: string, input: unknown): string {
  return `${tool} ${JSON.stringify(input)}`;
}
