import { beforeEach, expect, it } from "vitest";
import { beginDraft, draftOf, keepDraft } from "../src/drafts";
import { type Purpose, forTeam } from "../src/purpose";

const answer: Purpose = { to: "form", runId: "r", kind: "plan_review", form: "f", asked: "The plan" };
const insteadOf: Purpose = { to: "team", insteadOf: "f" };

beforeEach(() => keepDraft("t", { text: "", files: [], purpose: null }));

it("is for the team if it begins with a suggestion", () => {
  beginDraft("t", "Why?");
  expect(draftOf("t")).toMatchObject({ text: "Why?", purpose: forTeam });
});

it.each([answer, insteadOf, null])("keeps the purpose of what is written when a suggestion is added (%o)", (purpose) => {
  keepDraft("t", { text: "Ask nobody else", files: [], purpose });
  beginDraft("t", "Ask nobody else\nWhy?");
  expect(draftOf("t")).toMatchObject({ text: "Ask nobody else\nWhy?", purpose });
});

it("keeps a purpose that was chosen before the first word", () => {
  keepDraft("t", { text: "", files: [], purpose: answer });
  beginDraft("t", "Why?");
  expect(draftOf("t").purpose).toEqual(answer);
});
