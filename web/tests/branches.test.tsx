import { signal } from "@preact/signals";
import { render } from "preact-render-to-string";
import { beforeEach, expect, it } from "vitest";
import { besides, branchPoints, conversationId, takeBranches } from "../src/branches";

const { RunView } = await import("../src/components/chat/RunView");
const { ServiceContext } = await import("../src/components/service");
const { RunModel } = await import("../src/run");

const taken = () => Promise.resolve(true);
const acts = { askAgain: taken, answer: taken, answerInWords: () => undefined, branch: taken, cancel: taken, changePlan: taken, isAskedHere: () => false, isForemost: () => false, retry: taken, share: taken };
const clock = { now: signal(0), watch: () => () => undefined };
const service = { ask: () => Promise.reject(new Error()), has: () => true, attempt: taken, acts, clock };
const branches = [
  { thread_id: "t", run_id: "id0" },
  { thread_id: "second thread", run_id: "id1" },
  { thread_id: "third", run_id: "id2" },
];

function shown(status: string, isReplay = false): string {
  const run = new RunModel("id1", "1+3=?", status);
  const [agent_name, agent_id] = ["reporter", "id1_reporter_1"];
  run.apply({ id: 1, type: "run", run_id: "id1", thread_id: "second thread" });
  run.apply({ id: 2, type: "start_of_agent", agent_name, agent_id });
  run.apply({ id: 3, type: "message", message_id: "m", delta: { content: "It is 4." }, agent_id });
  run.apply({ id: 4, type: "end_of_agent", agent_name, agent_id });
  if (status !== "running") run.apply({ id: 5, type: "run_status", status });
  const view = <RunView run={run} version={run.version} />;
  return render(isReplay ? view : <ServiceContext.Provider value={service}>{view}</ServiceContext.Provider>);
}

beforeEach(() => takeBranches(null));

it("shows which version of a question is open, and links to those beside it", () => {
  takeBranches({ conversation_id: "t", branch_points: [{ run_id: "id1", branches, note: "a.csv was changed by code." }] });
  const html = shown("completed");
  expect(html).toContain("2 / 3");
  expect(html).toMatch(/href="#t"[^>]*aria-label="Previous version"/);
  expect(html).toMatch(/href="#third"[^>]*aria-label="Next version"/);
  expect(html).toContain("a.csv was changed by code.");
});

it("has no arrows at a question that was asked once", () => {
  expect(shown("completed")).not.toContain("Versions of this question");
});

it("leads nowhere beyond the first and the last version", () => {
  const point = { branches, note: "" };
  expect(besides({ ...point, run_id: "id0" })).toMatchObject({ at: 1, count: 3, previous: undefined, next: branches[1] });
  expect(besides({ ...point, run_id: "id2" })).toMatchObject({ at: 3, previous: branches[1], next: undefined });
});

it("forgets the branches of a conversation that is left", () => {
  takeBranches({ conversation_id: "t", branch_points: [{ run_id: "id1", branches, note: "" }] });
  takeBranches(null);
  expect([conversationId.value, branchPoints.value.size]).toEqual([null, 0]);
});

it("offers to edit and to answer again only once the run is over", () => {
  expect(shown("completed")).toContain(">Edit the question<");
  expect(shown("completed")).toContain(">Answer again<");
  expect(shown("running")).not.toContain(">Edit the question<");
  expect(shown("running")).not.toContain(">Answer again<");
});

it("copies question and answer, also in a replay, where nothing can be asked", () => {
  const html = shown("completed", true);
  expect(html).toContain("Copy the question");
  expect(html).toContain("Copy the answer");
  expect(html).not.toContain(">Edit the question<");
});
