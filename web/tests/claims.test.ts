import { afterEach, expect, it } from "vitest";
import { type CheckedClaims, explanations, NOTHING_CHECKED, reasonOf } from "../src/claims";
import type { ClaimView, ReasonView } from "../src/events.generated";
import { chooseLanguage } from "../src/texts";
import { en } from "../src/texts/en";
import { zh } from "../src/texts/zh";

const WRONG: ReasonView = { code: "other_value", values: { source: "[1]", found: "1936 m", value: "2136 m" } };

function claim(more: Partial<ClaimView>): ClaimView {
  return { text: "", row: "", column: "", verdict: "contradicted", reason: "in English", citations: [], passage: null, mark: 1, ...more };
}

function linesOf(checked: Partial<CheckedClaims>): string[] {
  return explanations({ ...NOTHING_CHECKED, ...checked }).get(1)?.lines ?? [];
}

afterEach(() => chooseLanguage("en"));

it("has the same values in the sentences of both languages", () => {
  const names = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(String).sort();
  const codes = Object.keys(en.reasons) as ReasonView["code"][];
  expect(Object.keys(zh.reasons)).toEqual(codes);
  expect(codes.filter((code) => String(names(en.reasons[code])) !== String(names(zh.reasons[code])))).toEqual([]);
});

it("gives both values of a contradicted figure in the language of the page", () => {
  const checked = { claims: [claim({ reasons: [WRONG] })] };
  for (const language of ["en", "zh"] as const) {
    chooseLanguage(language);
    const [line = ""] = linesOf(checked);
    expect(["[1]", "1936 m", "2136 m"].filter((value) => !line.includes(value))).toEqual([]);
    expect(/\p{Script=Han}/u.test(line)).toBe(language === "zh");
  }
});

it("shows several reasons, and the sentence of the service where it sent no codes or unknown ones", () => {
  const more: ReasonView = { code: "instead", values: { found: "7" } };
  expect(reasonOf({ reason: "", reasons: [WRONG, more] })).toContain("7");
  expect(reasonOf({ reason: "as it was" })).toBe("as it was");
  const unknown = { code: "of a later version", values: {} } as unknown as ReasonView;
  expect(reasonOf({ reason: "as it was", reasons: [WRONG, unknown] })).toBe("as it was");
});

it("leaves a value as it is that looks like a placeholder", () => {
  expect(reasonOf({ reason: "", reasons: [{ code: "words_nowhere", values: { words: "$& {words}" } }] })).toContain("$& {words}");
});

it("says whether the user or a program is the passage's author", () => {
  const passage = { source: 0, text: "440", text_index: 0, start: 0 };
  const read = (code: ReasonView["code"]) => linesOf({ claims: [claim({ passage, reasons: [{ code, values: { value: "440" } }] })] })[1];
  expect(read("judged_given")).toContain(en.userPassage);
  expect(read("stands_in_result")).toContain(en.programPassage);
  expect(linesOf({ claims: [claim({ passage })] })[1]).toContain(en.ownPassage);
});
