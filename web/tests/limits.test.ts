import { beforeEach, expect, it } from "vitest";
import { chosenBudget, limits, setLimit } from "../src/limits";

beforeEach(() => (limits.value = { minutes: "", tokens: "", cost: "" }));

it("sets no budget without a limit", () => {
  expect(chosenBudget()).toBeNull();
});

it("sends minutes as seconds, and only what is limited", () => {
  setLimit("minutes", "2.5");
  expect(chosenBudget()).toEqual({ seconds: 150, tokens: null, cost: null });
  setLimit("tokens", "5000.4");
  setLimit("minutes", "");
  expect(chosenBudget()).toEqual({ seconds: null, tokens: 5000, cost: null });
});

it.each(["0", "-3", "much", "Infinity"])("does not take %s for a limit", (text) => {
  setLimit("cost", text);
  expect(chosenBudget()).toBeNull();
});
