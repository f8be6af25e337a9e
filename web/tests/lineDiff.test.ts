import { describe, expect, it } from "vitest";
import { diffLines } from "../src/lineDiff";

const lines = (...all: string[]) => all.map((one) => `${one}\n`).join("");

describe("a change of a file", () => {
  it("is shown as the lines that went and came between those that stayed", async () => {
    expect(await diffLines("a = 1\nb = 2\nc = 3", "a = 1\nb = 4\nc = 3")).toEqual([
      { kind: "same", text: "a = 1\n" },
      { kind: "gone", text: "b = 2\n" },
      { kind: "come", text: "b = 4\n" },
      { kind: "same", text: "c = 3\n" },
    ]);
  });

  it("has only the lines that came where nothing was before, and only those that went where nothing is left", async () => {
    expect(await diffLines("", "a")).toEqual([{ kind: "come", text: "a\n" }]);
    expect(await diffLines("a", "")).toEqual([{ kind: "gone", text: "a\n" }]);
  });

  it("counts the unchanged lines that are far from a change", async () => {
    const same = Array.from({ length: 20 }, (_, at) => `line ${at}`);
    const [before, ...rest] = await diffLines(lines(...same, "old"), lines(...same, "new"));
    expect(before).toEqual({ kind: "same", text: lines("⋯ 17", "line 17", "line 18", "line 19") });
    expect(rest.map(({ kind }) => kind)).toEqual(["gone", "come"]);
  });

  it("is the whole old text and the whole new one where too much differs", async () => {
    const text = (name: string) => lines(...Array.from({ length: 1_500 }, (_, at) => `${name} ${at}`));
    expect(await diffLines(text("old"), text("new"))).toEqual([
      { kind: "gone", text: text("old") },
      { kind: "come", text: text("new") },
    ]);
  });
});
