import { beforeEach, expect, it } from "vitest";
import { chosenBudget, limits, setLimit } from "../src/limits";

beforeEach(() => (limits.value = { minutes: "", tokens: "", cost: "" }));

it("sets no budget without a limit", () => {
  expect(chosenBudget(true)).toBeNull();
});

it("sends minutes as seconds, and only what is limited", () => {
  setLimit("minutes", "2.5");
  expect(chosenBudget(true)).toEqual({ seconds: 150, tokens: null, cost: null });
  setLimit("tokens", "5000.4");
  setLimit("minutes", "");
  expect(chosenBudget(true)).toEqual({ seconds: null, tokens: 5000, cost: null });
});

it.each(["0", "-3", "much", "Infinity"])("does not take %s for a limit", (text) => {
  setLimit("cost", text);
  expect(chosenBudget(true)).toBeNull();
});

it("limits no cost while prices are not known", () => {
  setLimit("cost", "0.5");
  expect(chosenBudget(true)).toEqual({ seconds: null, tokens: null, cost: 0.5 });
  expect(chosenBudget(false)).toBeNull();
});
