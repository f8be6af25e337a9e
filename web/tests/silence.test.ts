import { signal } from "@preact/signals";
import { h } from "preact";
import { render } from "preact-render-to-string";
import { describe, expect, it } from "vitest";
import { ServiceContext } from "../src/components/service";
import { Silence, silences } from "../src/components/work/Silence";
import type { RunEvent } from "../src/events";
import { models } from "../src/models";
import { RunModel } from "../src/run";
import { texts } from "../src/texts";

/** A run at work: its member has begun at 100 s. */
function begun(): RunModel {
  const run = new RunModel("id1", "1+3=?", "queued");
  const events: RunEvent[] = [
    { id: 1, type: "run", run_id: "id1", thread_id: "id1", at: 98 },
    { id: 2, type: "start_of_agent", agent_name: "coder", agent_id: "t1", at: 100 },
  ];
  for (const event of events) run.apply(event);
  return run;
}

describe("a silence", () => {
  it("of a model is said after ten seconds, with its length", () => {
    const run = begun();
    expect(silences(run, 110)).toEqual([]);
    expect(silences(run, 132)).toEqual(["coder: the model has not answered for 32 s."]);
    run.apply({ id: 3, type: "message", message_id: "m", delta: { content: "It" }, agent_id: "t1", at: 131 });
    expect(silences(run, 132)).toEqual([]);
  });

  it("of a tool names the tool, until it reports something", () => {
    const run = begun();
    run.apply({ id: 3, type: "tool_call", tool_call_id: "c", tool_name: "bash_tool", tool_input: {}, agent_id: "t1", at: 101 });
    expect(silences(run, 120)[0]).toContain("Run a shell command");
    run.apply({ id: 4, type: "tool_output", tool_call_id: "c", tool_name: "bash_tool", stream: "stdout", text: "4", agent_id: "t1", at: 119 });
    expect(silences(run, 120)).toEqual([]);
  });

  it("is said of each member that works", () => {
    const run = begun();
    run.apply({ id: 3, type: "start_of_agent", agent_name: "researcher", agent_id: "t2", at: 125 });
    expect(silences(run, 132)).toHaveLength(1);
    expect(silences(run, 140)).toHaveLength(2);
  });

  it("is said of the team between two members", () => {
    const run = begun();
    run.apply({ id: 3, type: "end_of_agent", agent_name: "coder", agent_id: "t1", at: 105 });
    expect(silences(run, 120)[0]).toContain("The team");
  });

  it("is not said of a member that waits for the user, nor without times", () => {
    const run = begun();
    run.apply({ id: 3, type: "step_interrupt", interrupt_id: "i", kind: "question", payload: {}, options: [], step_id: 1, agent_name: "coder", agent_id: "t1", at: 101 });
    expect(silences(run, 200)).toEqual([]);
    const untimed = new RunModel("id2", "1+3=?", "queued");
    untimed.apply({ id: 1, type: "start_of_agent", agent_name: "coder", agent_id: "t1" });
    expect(silences(untimed, 200)).toEqual([]);
  });
});

describe("with the small model of the machine", () => {
  it("a silence says what is usual, and not where the team waits for a tool", async () => {
    const shown = (run: RunModel) => render(h(ServiceContext.Provider, { value: service(140), children: h(Silence, { run, version: run.version }) }));
    const run = begun();
    expect(shown(run)).not.toContain(texts.slowModel);
    models.value = { answering: "small", embedded: true, models: [], fixed: "", trusts: "" };
    expect(shown(run)).toContain(texts.slowModel);
    run.apply({ id: 3, type: "tool_call", tool_call_id: "c", tool_name: "bash_tool", tool_input: {}, agent_id: "t1", at: 101 });
    expect(shown(run)).not.toContain(texts.slowModel);
    models.value = null;
  });
});

/** A service whose clock stands. */
function service(now: number) {
  const clock = { now: signal(now), watch: () => () => undefined };
  return { ask: () => Promise.reject(new Error()), has: () => false, attempt: () => Promise.resolve(true), acts: null, clock };
}
