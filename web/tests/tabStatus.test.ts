import { expect, it, vi } from "vitest";
import { RunModel } from "../src/run";

vi.stubGlobal("document", { hidden: true });
const { isNews, statusOf, summarize } = await import("../src/tabStatus");

const QUESTION = { interrupt_id: "i", kind: "question" as const, payload: { question: "Which?" }, options: [] };

function runs(...statuses: string[]): RunModel[] {
  return statuses.map((status, at) => new RunModel(`r${at}`, "1+3=?", status));
}

it("shows what waits for a person before what works, and what ended until it was seen", () => {
  expect(summarize(runs("completed", "interrupted", "running"), new Set())).toBe("waiting");
  expect(summarize(runs("completed", "running", "queued"), new Set(["r0"]))).toBe("working");
  expect(summarize(runs("completed", "failed"), new Set(["r1"]))).toBe("done");
  expect(summarize(runs("completed"), new Set(["a run of another conversation"]))).toBe("idle");
  expect(summarize([], new Set())).toBe("idle");
});

it("takes a run whose step asks for one that waits", () => {
  const run = new RunModel("r1", "1+3=?", "running");
  run.apply({ id: 1, type: "run", run_id: "r1", thread_id: "t" });
  run.apply({ id: 2, type: "step_interrupt", ...QUESTION, step_id: 1, agent_name: "coder" });
  expect(statusOf(run)).toBe("interrupted");
});

it.each([
  ["working", "completed", true],
  ["working", "interrupted", true],
  ["interrupted", "cancelled", true],
  ["interrupted", "working", false],
  ["working", "working", false],
  ["completed", "completed", false],
  [undefined, "completed", false],
])("from %s to %s is news: %s", (before, now, news) => {
  expect(isNews(before, now)).toBe(news);
});
