import { signal } from "@preact/signals";
import { render } from "preact-render-to-string";
import { describe, expect, it } from "vitest";
import type { RunEvent } from "../src/events";
import type { Call } from "../src/parts";

const { RunView } = await import("../src/components/chat/RunView");
const { FormsOf } = await import("../src/components/plan/PendingForms");
const { RunActions, RunPlan } = await import("../src/components/work/RunWork");
const { ServiceContext } = await import("../src/components/service");
const { RunModel } = await import("../src/run");

const streams = import.meta.glob<RunEvent[]>("./streams/*.json", { eager: true, import: "default" });

const taken = () => Promise.resolve(true);
const acts = { askAgain: taken, answer: taken, answerInWords: () => undefined, branch: taken, cancel: taken, changePlan: taken, isAskedHere: () => false, isForemost: () => false, retry: taken, share: taken };
const clock = { now: signal(0), watch: () => () => undefined };
const service = { ask: () => Promise.reject(new Error()), has: () => true, attempt: taken, acts, clock };

describe.each(Object.entries(streams))("%s", (_, events) => {
  it("can be shown after each of its events", () => {
    const run = new RunModel("id1");
    for (const event of [null, ...events]) {
      if (event) run.apply(event);
      const view = <RunView run={run} version={run.version} />;
      expect(render(view)).toContain('class="standing');
      expect(render(<ServiceContext.Provider value={service}>{view}</ServiceContext.Provider>)).toContain('class="standing');
    }
  });
});

describe("a run whose answer has gaps", () => {
  it("names them and can be retried until the retry has ended without any", () => {
    const run = new RunModel("id1", "1+3=?", "queued");
    const shown = () =>
      render(
        <ServiceContext.Provider value={service}>
          <RunView run={run} version={run.version} />
        </ServiceContext.Provider>,
      );
    run.apply({ id: 1, type: "run", run_id: "id1", thread_id: "id1" });
    run.apply({ id: 2, type: "run_status", status: "completed", gaps: [{ step: "Search", reason: "No data." }] });
    expect(shown()).toContain("Search: No data.");
    expect(shown()).toContain(">Retry<");
    run.apply({ id: 3, type: "run", run_id: "id1", thread_id: "id1" });
    expect([run.status, run.gaps]).toEqual(["queued", []]);
    run.apply({ id: 4, type: "run_status", status: "completed" });
    expect(run.status).toBe("completed");
    expect(shown()).not.toContain(">Retry<");
  });
});

describe("a gap that the answer names itself", () => {
  it.each(["MISSING: the step 'Search' was not completed. No data.", "**Es fehlt (Search):** Keine Daten."])("is not stated twice (%s)", (line) => {
    const run = new RunModel("id1", "1+3=?", "queued");
    const text = `It is 4.\n\n${line}`;
    const [agent_name, agent_id] = ["reporter", "id1_reporter_1"];
    const events: RunEvent[] = [
      { id: 1, type: "run", run_id: "id1", thread_id: "id1" },
      { id: 2, type: "start_of_agent", agent_name, agent_id },
      { id: 3, type: "message", message_id: "id2", delta: { content: text }, agent_id },
      { id: 4, type: "end_of_agent", agent_name, agent_id },
      { id: 5, type: "run_status", status: "completed", gaps: [{ step: "Search", reason: "No data." }, { step: "Sum", reason: "No data." }] },
    ];
    for (const event of events) run.apply(event);
    const shown = render(<RunView run={run} version={run.version} />);
    expect(shown).toContain("Sum: No data.");
    expect(shown).not.toContain("Search: No data.");
  });
});

describe("members who work at the same time", () => {
  it("are named with their steps", () => {
    const run = new RunModel("id1", "1+3=?", "queued");
    const step = (id: number, title: string) => ({ id, title, agent_name: "researcher", description: "d", status: "in_progress" });
    const turn = (id: number): RunEvent => ({ id: id + 2, type: "start_of_agent", agent_name: "researcher", agent_id: `t${id}`, step_id: id });
    run.apply({ id: 1, type: "run", run_id: "id1", thread_id: "id1" });
    run.apply({ id: 2, type: "plan", title: "Both", steps: [step(1, "Exports"), step(2, "Imports")] });
    run.apply(turn(1));
    const now = () => /class="now">(.*)<\/summary>/.exec(render(<RunView run={run} version={run.version} />))![1];
    expect(now()).not.toContain("Exports");
    run.apply(turn(2));
    expect(now()).toMatch(/researcher.*Exports.*researcher.*Imports/);
  });
});

describe("the browser of a run at work", () => {
  const picture = "/api/artifacts/1";
  const shown = (run: InstanceType<typeof RunModel>) => render(<RunActions run={run} version={run.version} />);
  const begun = () => {
    const run = new RunModel("id1", "Buy a hat", "queued");
    run.apply({ id: 1, type: "run", run_id: "id1", thread_id: "id1" });
    run.apply({ id: 2, type: "start_of_agent", agent_name: "browser", agent_id: "t1" });
    run.apply({ id: 3, type: "tool_call", tool_call_id: "c", tool_name: "browser", tool_input: {}, agent_id: "t1" });
    const step = { tool_call_id: "c", number: 1, state: "thinking", thought: "", action: null, observation: "", seconds: 0 };
    run.apply({ id: 4, type: "browser_step", ...step, agent_id: "t1" });
    return run;
  };

  it("is shown from its first picture on", () => {
    const run = begun();
    expect(shown(run)).not.toContain("browser-view");
    run.apply({ id: 5, type: "browser_state", url: "https://e.test/", title: "E", tabs: [], screenshot: picture, agent_id: "t1" });
    expect(shown(run)).toContain('<details open class="browser-view live"');
  });

  it("is folded when another member works", () => {
    const run = begun();
    run.apply({ id: 5, type: "browser_state", url: "https://e.test/", title: "E", tabs: [], screenshot: picture, agent_id: "t1" });
    run.apply({ id: 6, type: "end_of_agent", agent_name: "browser", agent_id: "t1" });
    run.apply({ id: 7, type: "start_of_agent", agent_name: "coder", agent_id: "t2" });
    expect(run.isAtWork).toBe(true);
    expect(shown(run)).toContain("browser-view");
    expect(shown(run)).not.toContain('<details open class="browser-view');
  });
});

describe("what members find", () => {
  const started = () => {
    const run = new RunModel("id1", "How old are bats?", "queued");
    const step = { id: 1, title: "Read", agent_name: "researcher", description: "d", status: "in_progress" };
    run.apply({ id: 1, type: "run", run_id: "id1", thread_id: "id1" });
    run.apply({ id: 2, type: "plan", title: "Bats", steps: [step] });
    run.apply({ id: 3, type: "start_of_agent", agent_name: "researcher", agent_id: "t1", step_id: 1 });
    return run;
  };
  const note = (run: InstanceType<typeof RunModel>, id: number, result: string) => {
    const input = { statement: "A bat lived 41 years.", source: 2, quote: "at least 41 years" };
    run.apply({ id, type: "tool_call", tool_call_id: `c${id}`, tool_name: "note_finding", tool_input: input, agent_id: "t1" });
    run.apply({ id: id + 1, type: "tool_call_result", tool_call_id: `c${id}`, tool_name: "note_finding", tool_result: result, agent_id: "t1" });
  };
  const shown = (run: InstanceType<typeof RunModel>) => render(<RunPlan run={run} version={run.version} />);

  it("stands at its step with the words of its source", () => {
    const run = started();
    note(run, 4, "Noted, with source [2].");
    expect(run.findingsOf(1)).toEqual([{ statement: "A bat lived 41 years.", quote: "at least 41 years", source: 2 }]);
    expect(shown(run)).toContain("1 finding");
    expect(shown(run)).toMatch(/A bat lived 41 years.*\[2\].*at least 41 years/);
  });

  it("is no finding if it was refused", () => {
    const run = started();
    note(run, 4, "Not noted. These words do not stand in [2].");
    expect(run.findingsOf(1)).toEqual([]);
    expect(render(<RunActions run={run} version={run.version} />)).toContain("call failed");
  });

  it("is reviewed for gaps before the report, with the steps that are added", () => {
    const run = started();
    const question = { question: "Since when are they ringed?", why: "Ages depend on it.", open: false };
    run.apply({ id: 4, type: "gap_review", round: 1, questions: [question], steps: ["Read about rings"], refused: [{ title: "Ask them", reason: "No member can." }], notice: "Two rounds remain." });
    for (const text of ["1 question is open", "1 step was added", question.question, question.why, "Read about rings", "Ask them", "No member can.", "Two rounds remain."]) {
      expect(shown(run)).toContain(text);
    }
  });
});

describe("the work of a member", () => {
  it("is shown by its newest parts, and the number of the earlier ones", () => {
    const run = new RunModel("id1", "1+3=?", "queued");
    run.apply({ id: 1, type: "run", run_id: "id1", thread_id: "id1" });
    run.apply({ id: 2, type: "start_of_agent", agent_name: "coder", agent_id: "t1" });
    for (let n = 1; n <= 20; n += 1) {
      run.apply({ id: 2 + n, type: "tool_call", tool_call_id: `c${n}`, tool_name: "bash_tool", tool_input: { cmd: `echo <${n}>` }, agent_id: "t1" });
    }
    const shown = render(<RunActions run={run} version={run.version} />);
    expect(shown).toContain("echo &lt;20>");
    expect(shown).not.toContain("echo &lt;3>");
    expect(shown).toContain("16 earlier");
  });
});

describe("a run that waits for its model", () => {
  it("says so, and is at work again when the model is back", () => {
    const run = new RunModel("id1", "1+3=?", "queued");
    const shown = () => render(<RunView run={run} version={run.version} />);
    run.apply({ id: 1, type: "run", run_id: "id1", thread_id: "id1" });
    run.apply({ id: 2, type: "start_of_agent", agent_name: "coder", agent_id: "t1" });
    run.apply({ id: 3, type: "model_unreachable", attempt: 2, seconds: 2, left_seconds: 30, agent_id: "t1" });
    run.apply({ id: 4, type: "run_waiting", waiting_for: "model", reason: "It is away.", since: 100, until: 3700 });
    expect(run.status).toBe("queued");
    expect(shown().match(/class="notice"/g)).toHaveLength(1);
    expect(shown()).toMatch(/goes on by itself/);
    run.apply({ id: 5, type: "run_continued", waiting_for: "model", seconds: 90 });
    expect(run.status).toBe("running");
    expect(shown()).not.toMatch(/goes on by itself/);
  });
});

describe("a model that does not answer", () => {
  it("is reported until it answers", () => {
    const run = new RunModel("id1", "1+3=?", "queued");
    const shown = () => render(<RunView run={run} version={run.version} />);
    const notice = /class="notice"/;
    run.apply({ id: 1, type: "run", run_id: "id1", thread_id: "id1" });
    run.apply({ id: 2, type: "start_of_agent", agent_name: "coder", agent_id: "t1" });
    run.apply({ id: 3, type: "model_unreachable", attempt: 2, seconds: 2, left_seconds: 30, agent_id: "t1" });
    const version = run.turns[0]!.version;
    run.apply({ id: 4, type: "model_unreachable", attempt: 3, seconds: 2, left_seconds: 28, agent_id: "t1" });
    expect(run.turns[0]!.outage).toEqual({ attempt: 3, left: 28 });
    expect(shown()).toMatch(notice);
    run.apply({ id: 5, type: "message", message_id: "m", delta: { content: "It is" }, agent_id: "t1" });
    expect(shown()).not.toMatch(notice);
    expect(run.turns[0]!.version).toBeGreaterThan(version);
  });
});

describe("a run without its budget", () => {
  it("says what can be done, and can be asked again", () => {
    const run = new RunModel("id1", "1+3=?", "budget_exhausted");
    const shown = render(<ServiceContext.Provider value={service}><RunView run={run} version={run.version} /></ServiceContext.Provider>);
    expect(shown).toContain("reached its budget");
    expect(shown).toContain("Ask again</button>");
  });
});

describe("a run that waits", () => {
  const run = new RunModel("id1");
  run.apply({ id: 1, type: "run", run_id: "id1", thread_id: "id2" });
  run.apply({ id: 2, type: "interrupt", interrupt_id: "id3", kind: "question", payload: { question: "Which one?" }, options: ["A"] });
  run.apply({ id: 3, type: "run_status", status: "interrupted" });
  const view = <RunView run={run} version={run.version} />;

  it("has a form where a person can answer", () => {
    const forms = <FormsOf runs={[run]} />;
    expect(render(<ServiceContext.Provider value={service}>{forms}</ServiceContext.Provider>)).toContain("<button>A</button>");
    expect(render(<ServiceContext.Provider value={service}>{view}</ServiceContext.Provider>)).not.toContain("<button>A</button>");
  });

  it("says what was asked where nobody can", () => {
    expect(render(view)).toContain("Which one?");
    expect(render(view)).not.toContain("<button");
  });
});

describe("a call of an unknown tool", () => {
  it("is shown whatever it was given", async () => {
    const { PlainCall } = await import("../src/components/work/calls/PlainCall");
    const input = JSON.parse('{"a": {"toString": "x", "valueOf": "y"}, "b": null, "constructor": 1}');
    const call = { tool: "strange", input, result: "done" } as unknown as Call;
    expect(render(<PlainCall call={call} />)).toContain("toString");
  });
});

describe("a run at work", () => {
  it("has a button to cancel it only if the one below the question does not", () => {
    const run = new RunModel("id1", "1+3=?", "running");
    const shown = (isForemost: boolean) =>
      render(
        <ServiceContext.Provider value={{ ...service, acts: { ...acts, isForemost: () => isForemost } }}>
          <RunView run={run} version={run.version} />
        </ServiceContext.Provider>,
      );
    expect(shown(false)).toContain("Cancel");
    expect(shown(true)).not.toContain("Cancel");
  });
});

describe("what is written to a run", () => {
  const ANSWER = 'class="answer"';

  it("stands where the answer was when it was written, and so does the reply to it", () => {
    const run = new RunModel("id1", "1+3=?", "queued");
    const apply = (...events: object[]) => events.forEach((event) => run.apply({ id: run.lastId + 1, ...event } as RunEvent));
    const written = (id: string) => ({ type: "user_message", message_id: id, content: `(${id})` });
    const replied = (id: string) => ({ type: "user_message_answer", message_id: id, content: `(to ${id})` });
    const said = (id: string, content: string) => ({ type: "message", message_id: id, delta: { content }, agent_id: "r" });
    const order = () => [...render(<RunView run={run} version={run.version} />).matchAll(/\(.*?\)|(?<="shown">)Answered below|class="answer"/g)].map(([found]) => found);
    apply({ type: "run", run_id: "id1", thread_id: "id1" }, written("a"), written("b"), replied("b"));
    apply({ type: "start_of_agent", agent_name: "reporter", agent_id: "r" }, said("m", "It is 4"), written("c"), replied("a"));
    expect(order()).toEqual(["(a)", "Answered below", "(b)", "(to b)", ANSWER, "(to a)", "(c)"]);
    run.wrote("d", "(d)");
    apply(replied("d"), said("m", "."));
    expect(order().slice(-4)).toEqual(["(to a)", "(c)", "(d)", "(to d)"]);
    // Another answer is written after all of it.
    apply(said("n", "It is 5"));
    expect(order().at(-1)).toBe(ANSWER);
  });
});

describe("a message that becomes a run", () => {
  it("stands where it was written until it stands as the question of that run", () => {
    const run = new RunModel("id1", "1+3=?", "queued");
    const shown = (isAskedHere: boolean) =>
      render(
        <ServiceContext.Provider value={{ ...service, acts: { ...acts, isAskedHere: (id) => isAskedHere && id === "id2" } }}>
          <RunView run={run} version={run.version} />
        </ServiceContext.Provider>,
      );
    run.apply({ id: 1, type: "run", run_id: "id1", thread_id: "id1" });
    run.apply({ id: 2, type: "user_message", message_id: "id2", content: "And 2+2?" });
    run.apply({ id: 3, type: "user_message_answer", message_id: "id2", disposition: "next_run", content: "Gladly.", run_id: "id2" });
    expect(shown(true)).toContain("And 2+2?");
    run.apply({ id: 4, type: "run_status", status: "completed" });
    expect(shown(false)).toContain("And 2+2?");
    expect(shown(true)).not.toContain("And 2+2?");
    // As in a replay of the run.
    expect(render(<RunView run={run} version={run.version} />)).toContain("And 2+2?");
  });
});

describe("a plan in review", () => {
  it("says of each step when it begins, also of one for which there is no place at first", () => {
    const run = new RunModel("id1", "1+3=?", "queued");
    const steps = ["A", "B", "C", "D"].map((title, at) => ({ id: at + 1, title, agent_name: "researcher", description: "d", status: "not_started" }));
    const order = [{ after: [], beside: [2] }, { after: [], beside: [1] }, { after: [], beside: [] }, { after: [1, 2], beside: [] }];
    run.apply({ id: 1, type: "run", run_id: "id1", thread_id: "id1" });
    run.apply({ id: 2, type: "plan", title: "P", steps });
    run.apply({ id: 3, type: "interrupt", interrupt_id: "i", kind: "plan_review", payload: { plan: { title: "P", steps }, order }, options: [] });
    run.apply({ id: 4, type: "run_status", status: "interrupted" });
    const shown = render(<RunPlan run={run} version={run.version} />);
    const lines = [...shown.matchAll(/<summary>(.*?)<span class="unseen">/g)].map(([, line]) => line!.replace(/<[^>]*>/g, ""));
    expect(lines).toEqual([
      "A researcher · together with “B”",
      "B researcher · together with “A”",
      "C researcher · begins when another step has ended",
      "D researcher · waits for “A”, “B”",
    ]);
  });
});

describe("a plan at work", () => {
  const members = ["researcher", "coder", "researcher", "researcher", "reporter"];
  const begun = (...statuses: string[]) => {
    const run = new RunModel("id1", "1+3=?", "queued");
    const needs = [[], [], [1], [], undefined];
    const steps = statuses.map((status, at) => ({ id: at + 1, title: "ABCDE"[at]!, agent_name: members[at]!, description: "d", status, ...(needs[at] && { needs: needs[at] }) }));
    run.apply({ id: 1, type: "run", run_id: "id1", thread_id: "id1" });
    run.apply({ id: 2, type: "start_of_workflow", workflow_id: "w", input: [] });
    run.apply({ id: 3, type: "plan", title: "P", steps });
    return run;
  };
  const lines = (run: ReturnType<typeof begun>) => {
    const shown = render(<RunPlan run={run} version={run.version} />);
    return [...shown.matchAll(/<summary>(.*?)<span class="unseen">/g)].map(([, line]) => line!.replace(/<[^>]*>/g, "").split(" · ")[1] ?? "");
  };
  const question = { kind: "question" as const, payload: { question: "Which?" }, options: [] };

  it("says of each step that has not begun what it waits for", () => {
    expect(lines(begun("in_progress", "in_progress", "not_started", "not_started", "not_started"))).toEqual([
      "",
      "",
      "waits for “A”",
      "begins when another step has ended",
      "waits for all steps above",
    ]);
    expect(lines(begun("completed", "failed", "skipped", "completed", "not_started"))).toEqual(["", "", "", "", ""]);
    expect(lines(begun("completed", "completed", "blocked", "completed", "not_started"))[4]).toBe("waits for “C”");
  });

  it("says which step waits for the user, while others go on and when none does", () => {
    const run = begun("in_progress", "in_progress", "not_started", "not_started", "not_started");
    run.apply({ id: 4, type: "step_interrupt", interrupt_id: "i", ...question, agent_name: "coder", step_id: 2 });
    expect(lines(run).slice(0, 2)).toEqual(["", "Waiting for you"]);
    run.apply({ id: 5, type: "step_resumed", interrupt_id: "i", agent_name: "coder", step_id: 2 });
    expect(lines(run).slice(0, 2)).toEqual(["", ""]);
    const paused = begun("completed", "in_progress", "completed", "not_started", "not_started");
    paused.apply({ id: 4, type: "interrupt", interrupt_id: "i", ...question });
    paused.apply({ id: 5, type: "run_status", status: "interrupted" });
    expect(lines(paused)).toEqual(["", "Waiting for you", "", "begins when another step has ended", "waits for all steps above"]);
    paused.apply({ id: 6, type: "run_status", status: "cancelled" });
    expect(lines(paused)).toEqual(["", "", "", "", ""]);
  });
});
