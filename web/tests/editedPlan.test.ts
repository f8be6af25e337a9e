import { expect, it } from "vitest";
import { type PlannedStep, describeEditedPlan } from "../src/editedPlan";

const step = (title: string, needs: number[] | null = null): PlannedStep => ({ agent_name: "researcher", title, description: `Do ${title}.`, ...(needs && { needs }) });
const [first, second] = [step("A"), step("B")];

it.each<[string, PlannedStep[], PlannedStep[], string[]]>([
  ["another", [first, second, step("C", [1])], [first, second, step("C", [2])], ["Waits for: “B”"]],
  ["nothing", [first, second, step("C", [1])], [first, second, step("C", [])], ["Waits for: no step"]],
  ["all", [first, second, step("C", [1])], [first, second, step("C")], ["Waits for: all steps before"]],
  ["one of all", [first, second, step("C")], [first, second, step("C", [2])], ["Waits for: “B”"]],
  ["all, by their numbers", [first, second, step("C")], [first, second, step("C", [1, 2])], []],
  ["the same under another number", [first, second, step("C", [2])], [second, step("C", [1])], ["Removed: A"]],
  ["one that comes later now", [first, second, step("C", [1, 2])], [second, step("C", [1]), first], ["Waits for: “B”"]],
  ["all again, elsewhere", [first, second, step("C")], [second, step("C"), first], []],
])("shows for what a step waits if that has changed: %s", (_, before, after, lines) => {
  expect(describeEditedPlan(before, after).filter((line) => !/^\d/.test(line)).map((line) => line.trim())).toEqual(lines);
});

it("shows all that a new step has", () => {
  const added = { ...step("New one", [1]), note: "In euros." };
  expect(describeEditedPlan([first, second], [first, second, added])).toEqual([
    ...["1. A", "2. B", "3. New one"],
    ...["    New (researcher)", "    What to do: Do New one.", "    Note: In euros.", "    Waits for: “A”"],
  ]);
});
