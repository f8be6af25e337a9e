import { describe, expect, it } from "vitest";
import { offersFor } from "../src/components/plan/changes";

const steps = ["completed", "in_progress", "not_started", "not_started", "not_started"].map((status, at) => ({
  id: 10 + at,
  agent_name: at === 4 ? "reporter" : "coder",
  title: `${at}`,
  description: "d",
  status,
}));

describe("what is offered for a step under way", () => {
  const names = (at: number) => offersFor(steps, at).map((one) => one.name);

  it.each([
    [0, ["Skip", "Redo", "Edit", "Add a step after it"]],
    [1, ["Skip", "Redo", "Edit", "Add a step after it"]],
    [2, ["Skip", "Edit", "Later", "Add a step after it"]],
    [3, ["Skip", "Edit", "Earlier", "Add a step after it"]],
    [4, ["Edit"]],
  ])("at place %d: %j", (at, offered) => {
    expect(names(at)).toEqual(offered);
  });

  it("says behind which step one that is moved goes", () => {
    const moved = (at: number) => offersFor(steps, at).flatMap(({ change }) => (typeof change === "object" && change.action === "move" ? [change.after] : []));
    expect([moved(2), moved(3)]).toEqual([[13], [11]]);
    const untouched = steps.map((step) => ({ ...step, status: "not_started" }));
    expect(offersFor(untouched, 1).find((one) => one.name === "Earlier")?.change).toEqual({ action: "move", step_id: 11, after: 0 });
  });
});
