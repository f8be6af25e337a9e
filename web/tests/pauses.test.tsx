import { render } from "preact-render-to-string";
import { describe, expect, it } from "vitest";
import { TurnView } from "../src/components/work/TurnView";
import type { RunEvent, EventFields } from "../src/events";
import { RunModel } from "../src/run";
import type { PausePart } from "../src/parts";

const streams = import.meta.glob<RunEvent[]>("./streams/*.json", { eager: true, import: "default" });
const runAfter = (name: string) => applied(streams[`./streams/${name}.json`]!);
const CODER = { agent_name: "coder", agent_id: "a" };
const ECHO = { cmd: "echo 4" };

function applied(events: readonly RunEvent[]): RunModel {
  const run = new RunModel("id1");
  for (const event of events) run.apply(event);
  return run;
}

function waitsOf(run: RunModel): [string, PausePart][] {
  return run.turns.flatMap((turn) => turn.parts.filter((part) => part.kind === "pause").map((part): [string, PausePart] => [turn.agent, part]));
}

function asking(id: string, tool_input: object): EventFields[] {
  const payload = { reason: "approval", tool_name: "bash_tool", tool_input };
  return [
    { type: "start_of_agent", ...CODER },
    { type: "end_of_agent", ...CODER },
    { type: "interrupt", interrupt_id: id, kind: "tool_approval", payload, options: [] },
    { type: "run_status", status: "interrupted" },
    { type: "run", run_id: "id1", thread_id: "t" },
  ];
}

function calling(...inputs: Record<string, unknown>[]): EventFields[] {
  const calls = inputs.map((tool_input, at): EventFields => ({ type: "tool_call", tool_call_id: `c${at}`, tool_name: "bash_tool", tool_input }));
  return [{ type: "start_of_agent", ...CODER }, ...calls, { type: "end_of_agent", ...CODER }];
}

function outcomes(...events: EventFields[]) {
  return waitsOf(applied(events.map((event, at) => ({ ...event, id: at + 1 })))).map(([, one]) => one.outcome);
}

describe("what a run waited for", () => {
  it("stands in the turn of who asked, once the run goes on", () => {
    for (const [name, agent, kind, outcome] of [
      ["tool-approval", "coder", "tool_approval", "made"],
      ["question", "coordinator", "question", null],
      ["plan-review", "planner", "plan_review", null],
    ] as const) {
      const paused = streams[`./streams/${name}.json`]!.findIndex((event) => event.type === "final_session_state") + 1;
      expect(waitsOf(applied(streams[`./streams/${name}.json`]!.slice(0, paused)))).toEqual([]);
      expect(waitsOf(runAfter(name)).map(([who, one]) => [who, one.asked.kind, one.outcome])).toEqual([[agent, kind, outcome]]);
    }
  });

  it("says of a call whether it was made, made otherwise, or not", () => {
    expect(outcomes(...asking("1", ECHO))).toEqual([null]);
    expect(outcomes(...asking("1", ECHO), ...calling(ECHO))).toEqual(["made"]);
    expect(outcomes(...asking("1", ECHO), ...calling({ cmd: "echo 5" }))).toEqual(["edited"]);
    expect(outcomes(...asking("1", ECHO), ...calling())).toEqual(["left"]);
    expect(outcomes(...asking("1", ECHO), { type: "run_status", status: "cancelled" })).toEqual(["left"]);
    expect(outcomes(...asking("1", ECHO).slice(0, -1), { type: "run_status", status: "cancelled" })).toEqual(["left"]);
  });

  it("does not take the call that was asked for next for the one that was rejected", () => {
    expect(outcomes(...asking("1", ECHO), ...asking("2", { cmd: "ls" }), ...calling({ cmd: "ls" }))).toEqual(["left", "made"]);
    expect(outcomes(...asking("1", ECHO), ...asking("2", ECHO), ...calling(ECHO))).toEqual(["left", "made"]);
  });

  it("knows a call that is made only when another one has been approved, too", () => {
    expect(outcomes(...asking("1", ECHO), ...asking("2", { cmd: "ls" }), ...calling(ECHO, { cmd: "ls" }))).toEqual(["made", "made"]);
  });

  it("is shown with what was asked", () => {
    const run = applied([...asking("1", ECHO), ...calling()].map((event, at) => ({ ...event, id: at + 1 })));
    const turn = run.turns[0]!;
    const shown = render(<TurnView turn={turn} version={1} shown={9} answer={null} isLive={false} />);
    for (const words of ["Asked for your approval:", "Run a shell command", "echo 4", "It was not run."]) expect(shown).toContain(words);
  });
});
