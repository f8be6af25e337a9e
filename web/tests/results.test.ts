import { describe, expect, it } from "vitest";
import { runsOf } from "../src/ansi";
import { lasted } from "../src/clock";
import { hitsOf, outcomeOf, pageOf, ranOf, reasonOf } from "../src/results";

describe("the hits of a search", () => {
  it("are web pages and documents of the folder only, with their words and their number among the sources", () => {
    const found = [
      { url: "https://e.test/a", title: "A", content: "About A.", cite: 3 },
      { url: "javascript:alert(1)" },
      { url: "https://" },
      null,
      7,
      { url: "http://e.test/b", title: 5, cite: "4" },
      { url: "folder:notes/a.md", title: "a.md", content: "Notes.", cite: 5 },
    ];
    expect(hitsOf(JSON.stringify(found))).toEqual([
      { url: "https://e.test/a", title: "A", content: "About A.", cite: 3 },
      { url: "http://e.test/b", title: "", content: "", cite: null },
      { url: "", title: "a.md", content: "Notes.", cite: 5 },
    ]);
    expect(hitsOf("The search failed.")).toEqual([]);
  });
});

describe("what code came to", () => {
  it("is its output, its errors and what the sandbox says of it", () => {
    const result = "1\n2\n[stderr]\nTraceback (most recent call last):\nNameError: no x\n[exit code 1]\n[took 4.2 s]";
    expect(ranOf(result)).toEqual({
      out: "1\n2",
      err: "Traceback (most recent call last):\nNameError: no x",
      notes: ["exit code 1", "took 4.2 s"],
      isFailed: true,
    });
    expect(reasonOf({ tool: "python_repl_tool", result })).toBe("NameError: no x");
  });

  it("keeps lists that were printed, and errors without output", () => {
    expect(ranOf("[1, 2]")).toEqual({ out: "[1, 2]", err: "", notes: [], isFailed: false });
    expect(ranOf("[stderr]\nwarned")).toEqual({ out: "", err: "warned", notes: [], isFailed: false });
    expect(ranOf("[exit code 2]")).toEqual({ out: "", err: "", notes: ["exit code 2"], isFailed: true });
  });
});

describe("a call", () => {
  it.each([
    ["bash_tool", null, "open"],
    ["bash_tool", "Waits for the user.", "waits"],
    ["bash_tool", "ok", "done"],
    ["bash_tool", "no\n[exit code 127]", "failed"],
    ["python_repl_tool", "The program stopped while this ran.", "failed"],
    ["tavily_search", "[]", "done"],
    ["search_papers", '[{"note": "pubmed did not answer"}]', "done"],
    ["search_papers", "No search provider answered.", "failed"],
    ["tavily_search", "No search provider answered.", "failed"],
    ["crawl_tool", "# T\n\nSource [2]: https://e.test/\n\nWords", "done"],
    ["crawl_tool", "https://e.test/ cannot be read: 404", "failed"],
    ["read_file", "There is no file 'x' in the workspace.", "failed"],
    ["read_file", "1\tErrors are fine", "done"],
    ["weather", "ValueError: no city", "failed"],
    ["weather", "weather failed: no city", "failed"],
    ["weather", '{"city": "Rome"}', "done"],
  ])("%s with the result %j is %s", (tool, result, outcome) => {
    expect(outcomeOf({ tool, result })).toBe(outcome);
  });
});

describe("a page that was read", () => {
  it("has its title, address, number and words", () => {
    const page = { title: "Tea", url: "https://e.test/tea", cite: 2, text: "# Tea\n\nHot." };
    expect(pageOf("# Tea\n\nSource [2]: https://e.test/tea\n\n# Tea\n\nHot.")).toEqual(page);
    expect(pageOf("# Tea\n\nSource: https://e.test/tea")).toEqual({ ...page, cite: null, text: "" });
    expect(pageOf("# Tea\n\nSource: javascript:alert(1)\n\nx")).toBe(null);
  });
});

describe("a terminal's text", () => {
  it("has colours by name, by number and as they are", () => {
    const shown = runsOf("a\u001b[1;31mred\u001b[0m\u001b[38;5;196mx\u001b[0m\u001b[48;2;1;2;3my");
    expect(shown.map((run) => [run.text, run.classes, run.colour ?? run.ground])).toEqual([
      ["a", "", undefined],
      ["red", "ansi-red ansi-bold", undefined],
      ["x", "ansi-palette-196", "rgb(255, 0, 0)"],
      ["y", "ansi-truecolor-bg", "rgb(1, 2, 3)"],
    ]);
  });

  it("shows what was written last over a line, and no titles", () => {
    const shown = runsOf("10 %\r 50 %\r100 %\r\n\u001b]0;title\u0007done\u001b[2K");
    expect(shown.map((run) => run.text).join("")).toBe("100 %\ndone");
  });

  it("is taken in time, whatever it is", () => {
    for (const piece of ["\u001b[", "\u001b]", "\r", "\u001b[31mx", "x"]) {
      expect(runsOf(piece.repeat(Math.ceil(20_000 / piece.length))).length).toBeLessThan(10_000);
    }
  });
});

describe("a duration", () => {
  it.each([
    [-3, "0.0 s"],
    [0.42, "0.4 s"],
    [9.96, "10 s"],
    [59.4, "59 s"],
    [185, "3:05"],
    [3_600, "1:00:00"],
  ])("of %d s is %s", (seconds, words) => {
    expect(lasted(seconds)).toBe(words);
  });
});
