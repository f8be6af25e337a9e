import { expect, it } from "vitest";
import { type Asked, describe } from "../src/components/chat/RunOptions";

const none: Asked = { model: "", effort: "", budget: {}, deep_thinking_mode: false, search_before_planning: false, auto_accepted_plan: true, team_members: [], agent: "", depth: "", locale: "", report_style: "" };

it("says nothing of what was left to the service", () => {
  expect(describe({ ...none, budget: { tokens: null, seconds: null, model_calls: null, tool_calls: null, cost: null } })).toEqual([]);
});

it.each<[Partial<Asked>, string]>([
  [{ deep_thinking_mode: true }, "Deep thinking"],
  [{ search_before_planning: true }, "Search first"],
  [{ auto_accepted_plan: false }, "Review the plan"],
  [{ depth: "quick" }, "Depth Quick: one step, few sources"],
  [{ report_style: "table" }, "Report Mostly tables"],
  [{ report_style: "of a later version" }, "Report of a later version"],
  [{ model: "gpt" }, "Model gpt"],
  [{ effort: "low" }, "Effort low"],
  [{ team_members: ["coder", "reporter"] }, "Team coder, reporter"],
  [{ agent: "manus" }, "Team manus"],
  [{ locale: "de-DE" }, "Language de-DE"],
  [{ budget: { seconds: 90 } }, "at most 1.5 minutes of work"],
  [{ budget: { tokens: 900_000 } }, "at most 900,000 tokens"],
  [{ budget: { model_calls: 7 } }, "at most 7 calls of a model"],
  [{ budget: { tool_calls: 1_234 } }, "at most 1,234 calls of a tool"],
  [{ budget: { cost: 0.0004 } }, "at most 0.0004 cost, in the currency of the prices"],
])("says what was chosen: %o", (asked, words) => {
  expect(describe({ ...none, ...asked })).toEqual([words]);
});
