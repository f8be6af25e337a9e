import { describe, expect, it } from "vitest";
import type { RunEvent, EventFields as Event } from "../src/events";
import { RunModel } from "../src/run";
import type { Call } from "../src/parts";

type MarkedEvent = Event & { agent_id?: string; step_id?: number };

const streams = Object.fromEntries(
  Object.entries(import.meta.glob<RunEvent[]>("./streams/*.json", { eager: true, import: "default" })).map(
    ([path, events]) => [path.slice("./streams/".length, -".json".length), events],
  ),
);

function runAfter(name: string, upTo = Infinity, run = new RunModel("id1")): RunModel {
  for (const event of streams[name]!.slice(0, upTo)) run.apply(event);
  return run;
}

function callsOf(run: RunModel): Call[] {
  return run.turns.flatMap((turn) => turn.parts.filter((part) => part.kind === "call"));
}

function shape(run: RunModel) {
  const { question, status, turns, plan, waiting, problems, artifacts, lastId, isComplete, answer } = run;
  return { question, status, turns, plan, waiting, problems, artifacts, lastId, isComplete, answer };
}

describe("a run", () => {
  it("shows a workflow with its question, plan, calls and report", () => {
    const run = runAfter("workflow");
    expect(run.question).toBe("1+3=?");
    expect(run.status).toBe("completed");
    expect(run.plan?.steps.map((step) => step.status)).toEqual(["completed", "completed"]);
    expect(run.answer).toEqual({ kind: "text", content: "# Report\n\nIt is **4**.", reasoning: "How to say it?", version: 9 });
    const coder = run.turns.find((turn) => turn.agent === "coder");
    expect(coder?.parts[0]).toMatchObject({ kind: "call", tool: "python_repl_tool", input: { code: "print(1+3)" } });
    expect(coder?.tokens).toBeGreaterThan(0);
  });

  it("has the texts of pages as sources and not among its files", () => {
    const run = new RunModel("id1");
    const file = { type: "artifact" as const, artifact_id: "a1", name: "sums.csv", media_type: "text/csv", size: 1, url: "/api/artifacts/a1" };
    run.apply({ id: 1, ...file });
    run.apply({ id: 2, ...file, artifact_id: "a2", name: "Solar power.md", source: 3 });
    expect(run.artifacts.map(({ name }) => name)).toEqual(["sums.csv"]);
  });

  it("answers small talk with the coordinator's words", () => {
    const run = runAfter("small-talk");
    expect([run.question, run.answer?.content, run.plan]).toEqual(["1+3=?", "Hello! How are you?", null]);
  });

  it("shows a plan while it is written, which is none until it is sent without being a draft", () => {
    const events = streams["workflow"]!;
    const drafts = events.flatMap((event, at) => (event.type === "plan" && event.draft ? [at + 1] : []));
    const seen = drafts.map((upTo) => runAfter("workflow", upTo));
    expect(seen.map((run) => [run.plan, run.draft?.steps.length])).toEqual([[null, 1], [null, 2]]);
    const first = events.findIndex((event) => event.type === "plan" && !event.draft) + 1;
    const run = runAfter("workflow", first);
    expect([run.plan?.steps.length, run.draft]).toEqual([2, null]);
  });

  it("takes what announces a hand-off for no answer", () => {
    const run = new RunModel("id1");
    const agent = (name: string) => ({ type: "start_of_agent" as const, agent_name: name, agent_id: name });
    const said = { type: "message" as const, message_id: "m", delta: { content: "I hand this over." } };
    [agent("coordinator"), said, agent("planner")].forEach((event, at) => run.apply({ ...event, id: at + 1 }));
    expect(run.answer).toBeNull();
  });

  it("says why it failed", () => {
    const run = runAfter("model-error-of-planner");
    expect(run.status).toBe("failed");
    expect(run.problems).toHaveLength(1);
  });

  it("shows the error of a tool as its result", () => {
    const calls = runAfter("tool-that-raises").turns.flatMap((turn) => turn.parts.filter((part) => part.kind === "call"));
    expect(calls).toHaveLength(1);
    expect(calls[0]?.result).toBeTruthy();
  });

  it("is at work once somebody works, not while it waits for another run", () => {
    const begun = streams["workflow"]!.findIndex((event) => event.type === "start_of_agent");
    expect([runAfter("workflow", begun).status, runAfter("workflow", begun + 1).status]).toEqual(["queued", "running"]);
  });

  it("does not take a status from elsewhere for the end of its stream, nor for a new beginning", () => {
    const over = runAfter("cancelled");
    over.updateStatus("running");
    // It may have been retried: its stream is read again.
    expect([over.status, over.isComplete]).toEqual(["cancelled", false]);
    const paused = streams["plan-review"]!.findIndex((event) => event.type === "final_session_state") + 1;
    const waits = runAfter("plan-review", paused);
    waits.updateStatus("running");
    expect([waits.status, waits.isComplete]).toEqual(["interrupted", false]);
  });

  it("waits for its review and goes on as the same run", () => {
    const paused = streams["plan-review"]!.findIndex((event) => event.type === "final_session_state") + 1;
    const run = runAfter("plan-review", paused);
    expect([run.status, run.waiting?.kind, run.isComplete]).toEqual(["interrupted", "plan_review", true]);
    run.reopen();
    expect(run.isComplete).toBe(false);
    runAfter("plan-review", Infinity, run);
    expect([run.status, run.waiting, run.isComplete]).toEqual(["completed", null, true]);
  });

  it("passes over what has no number, or is not known", () => {
    const run = runAfter("workflow");
    const before = shape(run);
    run.apply({ id: null, type: "error", code: "stopping", message: "", agent_name: null, retryable: true });
    expect(shape(run)).toEqual(before);
    run.apply({ id: run.lastId + 1, type: "of a later version" } as unknown as RunEvent);
    expect(run.status).toBe("completed");
  });

  it("shows each step of a call of the browser as it was sent last", () => {
    const run = new RunModel("id1");
    const step = { type: "browser_step", tool_call_id: "c", thought: "", action: null, observation: null, seconds: 0 } as const;
    run.apply({ id: 1, type: "start_of_agent", agent_name: "browser", agent_id: "a" });
    run.apply({ id: 2, type: "tool_call", tool_call_id: "c", tool_name: "browser", tool_input: {} });
    const runAfter = [[1, "thinking"], [1, "completed"], [2, "thinking"]] as const;
    runAfter.forEach(([number, state], index) => run.apply({ id: 3 + index, ...step, number, state }));
    const part = run.turns[0]?.parts[0];
    expect(part?.kind === "call" && part.steps.map((one) => [one.number, one.state])).toEqual([
      [1, "completed"],
      [2, "thinking"],
    ]);
    run.apply({ id: 6, type: "browser_state", url: "https://e.test/", title: "E", screenshot: "/api/artifacts/1" });
    expect(run.recording.place).toMatchObject({ url: "https://e.test/", title: "E", screenshot: "/api/artifacts/1" });
  });

  it("keeps members apart who work at the same time, each with its step", () => {
    const run = new RunModel("id1");
    const both = [1, 2].map((step_id) => ({ agent_id: `id1_researcher_4_${step_id}`, step_id }));
    const steps = both.map(({ step_id: id }) => ({ id, agent_name: "researcher", title: `Step ${id}`, description: "", status: "in_progress" }));
    const events: MarkedEvent[] = [
      { type: "plan", title: "P", steps },
      // The second begins first: what was sent first is not what the plan has first.
      ...[...both].reverse().map((mark): MarkedEvent => ({ type: "start_of_agent", agent_name: "researcher", ...mark })),
      ...["one ", "two"].flatMap((text) => both.map((mark): MarkedEvent => ({ type: "message", message_id: `m${mark.step_id}`, delta: { content: text }, ...mark }))),
      ...both.map((mark): MarkedEvent => ({ type: "usage", agent_name: "researcher", model: "m", input_tokens: 10 * mark.step_id, output_tokens: 0, seconds: 1, ...mark })),
      ...both.map((mark): MarkedEvent => ({ type: "tool_call", tool_call_id: `c${mark.step_id}`, tool_name: "tavily_search", tool_input: {}, ...mark })),
    ];
    events.forEach((event, index) => run.apply({ ...event, id: index + 1 }));
    expect(run.turns.map((turn) => [turn.step?.title, turn.tokens, turn.parts.map((part) => part.kind)])).toEqual([
      ["Step 2", 20, ["text", "call"]],
      ["Step 1", 10, ["text", "call"]],
    ]);
    expect(run.turns.flatMap((turn) => turn.parts).flatMap((part) => (part.kind === "text" ? part.content : []))).toEqual(["one two", "one two"]);
    expect(run.turns.every((turn) => turn.isOpen)).toBe(true);
    run.apply({ id: run.lastId + 1, type: "end_of_agent", agent_name: "researcher", ...both[0]! });
    expect(run.turns.map((turn) => turn.isOpen)).toEqual([true, false]);
  });

  it("marks an answer that broke off where another one follows", () => {
    const run = new RunModel("id1");
    const mark = { agent_id: "a" };
    run.apply({ id: 1, type: "start_of_agent", agent_name: "coder", ...mark });
    run.apply({ id: 2, type: "message", message_id: "m1", delta: { content: "half" }, ...mark });
    run.apply({ id: 3, type: "message_replaced", message_id: "m1", replaced_by: "m2", ...mark });
    run.apply({ id: 4, type: "message", message_id: "m2", delta: { content: "whole" }, ...mark });
    expect(run.turns[0]!.parts.map((part) => part.kind === "text" && [part.content, part.isReplaced ?? false])).toEqual([
      ["half", true],
      ["whole", false],
    ]);
  });

  it("marks the answer of a step that is done again", () => {
    const run = new RunModel("id1");
    const step = { id: 1, agent_name: "coder", title: "Count", description: "" } as const;
    const plan = (status: "not_started" | "in_progress" | "completed"): MarkedEvent => ({ type: "plan", title: "P", steps: [{ ...step, status }] });
    const says = (agent_id: string, message_id: string, content: string): MarkedEvent => ({ type: "message", message_id, delta: { content }, agent_id, step_id: 1 });
    const events: MarkedEvent[] = [
      plan("in_progress"),
      { type: "start_of_agent", agent_name: "coder", agent_id: "a", step_id: 1 },
      says("a", "m1", "all years"),
      says("a", "m2", "only 2023"),
      { type: "end_of_agent", agent_name: "coder", agent_id: "a", step_id: 1 },
      plan("completed"),
      plan("not_started"),
      plan("in_progress"),
      { type: "start_of_agent", agent_name: "coder", agent_id: "b", step_id: 1 },
      says("b", "m3", "only 2024"),
    ];
    events.forEach((event, index) => run.apply({ ...event, id: index + 1 }));
    expect(run.turns.flatMap((turn) => turn.parts).map((part) => part.kind === "text" && [part.content, part.isOutdated ?? false])).toEqual([
      ["all years", true],
      ["only 2023", true],
      ["only 2024", false],
    ]);
  });

  it("keeps the end of a call's output, each stream for itself", () => {
    const run = new RunModel("id1");
    const call = { tool_call_id: "c", tool_name: "bash_tool" };
    run.apply({ id: 1, type: "start_of_agent", agent_name: "coder", agent_id: "a" });
    run.apply({ id: 2, type: "tool_call", ...call, tool_input: {} });
    for (let n = 0; n < 100; n += 1) {
      run.apply({ id: 3 + n, type: "tool_output", ...call, stream: n % 10 === 9 ? "stderr" : "stdout", text: `${n} `.repeat(500) });
    }
    const printed = callsOf(run)[0]!.printed;
    expect(printed.map((one) => one.text.length).reduce((sum, length) => sum + length)).toBe(20_000);
    expect(printed.at(-1)).toEqual({ stream: "stderr", text: "99 ".repeat(500) });
    expect(printed.at(-2)?.text.endsWith("98 ")).toBe(true);
  });

  it("knows how long calls, turns and the run took, without what it waited for a person", () => {
    const run = new RunModel("id1");
    const call = { tool_call_id: "c", tool_name: "bash_tool" };
    const agent = { agent_name: "coder", agent_id: "a" };
    run.apply({ id: 1, type: "run", run_id: "id1", thread_id: "t", at: 100 });
    run.apply({ id: 2, type: "start_of_agent", ...agent, at: 101 });
    run.apply({ id: 3, type: "tool_call", ...call, tool_input: {}, at: 102 });
    expect([run.worked(104), callsOf(run)[0]!.ended]).toEqual([4, null]);
    run.apply({ id: 4, type: "tool_call_result", ...call, tool_result: "", at: 105.5 });
    run.apply({ id: 5, type: "end_of_agent", ...agent, at: 106 });
    run.apply({ id: 6, type: "run_status", status: "interrupted", at: 107 });
    expect(run.worked(1_000)).toBe(7);
    run.apply({ id: 7, type: "run", run_id: "id1", thread_id: "t", at: 2_000 });
    run.apply({ id: 8, type: "run_status", status: "completed", at: 2_001 });
    expect(run.worked(9_000)).toBe(8);
    expect([run.turns[0]!.begun, run.turns[0]!.ended]).toEqual([101, 106]);
    expect([callsOf(run)[0]!.begun, callsOf(run)[0]!.ended]).toEqual([102, 105.5]);
  });

  it("shows no times if none were sent", () => {
    const run = runAfter("workflow");
    expect([run.worked(1_000), run.turns[0]!.begun, callsOf(run)[0]!.ended]).toEqual([null, null, null]);
  });

  it("says at which step each member works, also when it begins again", () => {
    const run = new RunModel("id1");
    const steps = (...standing: string[]) =>
      standing.map((status, at) => ({ id: at + 1, agent_name: "coder", title: `Step ${at + 1}`, description: "", status }));
    const begin = (id: number) => run.apply({ id, type: "start_of_agent", agent_name: "coder", agent_id: `a${id}` });
    run.apply({ id: 1, type: "plan", title: "P", steps: steps("in_progress", "in_progress", "not_started") });
    for (const id of [2, 3, 4]) begin(id);
    run.apply({ id: 5, type: "plan", title: "P", steps: steps("completed", "completed", "in_progress") });
    begin(6);
    run.apply({ id: 7, type: "plan", title: "P", steps: steps("completed", "completed", "completed") });
    begin(8);
    expect(run.turns.map((turn) => turn.step?.title)).toEqual(["Step 1", "Step 2", "Step 2", "Step 3", undefined]);
  });

  it("puts the files under the code that made them, whatever else names them", () => {
    const run = new RunModel("id1");
    run.apply({ id: 1, type: "start_of_agent", agent_name: "coder", agent_id: "a" });
    const result = "done\n[figures drawn: plots/a.png]\n[files written: plots/a.png, b.csv and 3 more]";
    ["python_repl_tool", "crawl_tool"].forEach((tool_name, at) => {
      const call = { tool_call_id: tool_name, tool_name };
      run.apply({ id: 2 + 2 * at, type: "tool_call", ...call, tool_input: {} });
      run.apply({ id: 3 + 2 * at, type: "tool_call_result", ...call, tool_result: at === 0 ? result : "[files written: other.png]" });
    });
    const file = (id: number, name: string) => ({ id, type: "artifact" as const, artifact_id: name, name, media_type: "image/png", size: 1, url: "/u" });
    ["a.png", "other.png", "a.png"].forEach((name, at) => run.apply(file(6 + at, name)));
    expect(callsOf(run).map((call) => call.files.map((one) => one.name))).toEqual([["a.png"], []]);
    expect(run.artifacts.map((one) => one.name)).toEqual(["a.png", "other.png"]);
  });
});

describe.each(Object.keys(streams))("the stream %s", (name) => {
  it("gives the same run when any part of it is sent twice", () => {
    const whole = shape(runAfter(name));
    for (let cut = 0; cut <= streams[name]!.length; cut += 1) {
      expect(shape(runAfter(name, Infinity, runAfter(name, cut)))).toEqual(whole);
    }
  });
});

describe("a step that asks while others go on", () => {
  const first = { id: 2, type: "start_of_agent", agent_name: "researcher", agent_id: "a", step_id: 1 } as const;
  const asks: MarkedEvent = { type: "step_interrupt", interrupt_id: "q", kind: "question", payload: { question: "Which?" }, options: [], step_id: 1, agent_name: "researcher", agent_id: "a" };
  const resumed = { type: "step_resumed", interrupt_id: "q", step_id: 1, agent_name: "researcher", agent_id: "a" } as const;
  const begun = () => {
    const run = new RunModel("id1");
    run.apply({ id: 1, type: "run", run_id: "id1", thread_id: "t" });
    run.apply(first);
    run.apply({ id: 3, ...asks });
    return run;
  };

  it("is shown, and the run works, until it is answered", () => {
    const run = begun();
    expect([run.status, run.questions.map((one) => one.interrupt_id), run.waiting]).toEqual(["running", ["q"], null]);
    run.apply({ id: 4, ...resumed });
    expect(run.questions).toEqual([]);
    expect(run.turns[0]!.parts).toMatchObject([{ kind: "pause", asked: { interrupt_id: "q" } }]);
  });

  it("may ask again by the same id after its answer was taken here", () => {
    const run = begun();
    const asked = run.questions[0]!;
    run.answered(asked);
    run.apply({ id: 4, ...resumed });
    run.apply({ id: 5, ...asks, payload: { question: "Which now?" } });
    run.answered(asked);
    expect(run.questions.map((one) => one.payload["question"])).toEqual(["Which now?"]);
  });

  it("asks no more when its turn has ended, and not beside the run that waits with its question", () => {
    const run = begun();
    run.apply({ id: 4, type: "end_of_agent", agent_name: "researcher", agent_id: "a" });
    expect(run.questions).toEqual([]);
    run.apply({ id: 5, type: "interrupt", interrupt_id: "q", kind: "question", payload: { question: "Which?" }, options: [] });
    run.apply({ id: 6, type: "run_status", status: "interrupted" });
    expect([run.status, run.waiting?.interrupt_id]).toEqual(["interrupted", "q"]);
  });
});
