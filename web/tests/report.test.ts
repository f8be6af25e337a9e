import { describe, expect, it } from "vitest";
import { addressOf } from "../src/address";
import { draw, kindOf } from "../src/diagrams";
import { languageOf } from "../src/highlight";
import { coloured } from "../src/languages";
import { GrowingText } from "../src/markdown";
import { nameIn } from "../src/download";
import { en } from "../src/texts/en";

const whole = (text: string) => new GrowingText().take(text, true).settled;

const REPORT = `# Tea\r\n\r\nIt costs 3 euros [1], see
[the list](https://e.test/a "all") and $a_1$.

* one
* two

  still two
  1. deeper

Setext
------

| a | b |
|---|--:|
| 1 | 2 |

~~~mermaid
flowchart LR
  A --> B

  B --> C
~~~

> said
lazily [unverified] [2, 3]

    code [1]

    code

***
The end`;

describe("a text that grows", () => {
  it("is at each of its letters what it would be if it had come at once", () => {
    const growing = new GrowingText();
    let settled = "";
    for (let end = 1; end <= REPORT.length; end += 1) {
      const grown = growing.take(REPORT.slice(0, end), false);
      settled = (grown.isAnew ? "" : settled) + grown.settled;
      expect(settled + grown.open).toBe(whole(REPORT.slice(0, end)));
    }
    const last = growing.take(REPORT, true);
    expect([settled + last.settled, last.isAnew, last.open]).toEqual([whole(REPORT), false, ""]);
  });

  it("is laid out anew where a link's address is said further below", () => {
    const growing = new GrowingText();
    growing.take("See [it].\n\nMore.\n\n[it]: https://e.test/", false);
    const grown = growing.take("See [it].\n\nMore.\n\n[it]: https://e.test/", true);
    expect(grown.isAnew).toBe(true);
    expect(grown.settled).toContain('href="https://e.test/"');
  });

  it("begins anew when it is another text", () => {
    const growing = new GrowingText();
    growing.take("One.\n\nTwo.", false);
    expect(growing.take("Three.", true)).toEqual({ isAnew: true, settled: "<p>Three.</p>\n", open: "" });
    expect(growing.take("Three. Four.", true).isAnew).toBe(true);
  });

  it("costs in all a few times its length, however many pieces it comes in", () => {
    const paragraph = `## Part\n\n${"Some words of a long report [1]. ".repeat(12)}\n\n- a\n- b\n\n`;
    const text = paragraph.repeat(Math.ceil(100_000 / paragraph.length));
    const growing = new GrowingText();
    const pieces = 1_000;
    let made = 0;
    for (let piece = 1; piece <= pieces; piece += 1) {
      const { settled, open } = growing.take(text.slice(0, (text.length * piece) / pieces), piece === pieces);
      made += settled.length + open.length;
    }
    expect(made).toBeLessThan(30 * text.length);
  });
});

describe("what a report says of its sources", () => {
  it("is kept as citations and marks", () => {
    const html = whole("A [1], B [2, 3], 丙【4】, D [^5], E [1234], F [12345] [unverified].");
    expect(html.match(/<span class="citation">.*?<\/span>/g)?.join()).toBe(
      ["[1]", "[2, 3]", "【4】", "[1234]"].map((one) => `<span class="citation">${one}</span>`).join(),
    );
    expect(html).toContain('<mark>unverified</mark>.');
  });

  it("is not looked for in code, in links, in what is escaped, or in years", () => {
    expect(whole("`[1] [unverified]` \\[2\\] [[3]](https://e.test/) [2024] [a]\n\n    [4]")).not.toMatch(/class=|<mark/);
  });

  it("is no link that somebody else wrote behind a mark", () => {
    expect(whole("So [unverified](https://evil.test/)")).toMatch(/<p>So <mark>unverified<\/mark>\(/);
  });

});

describe("a formula", () => {
  it("in brackets stands in lines of its own or has TeX, so that a title in brackets is none", () => {
    expect(whole("\\[\na^2\n\\]")).toContain('<span class="math display">');
    expect(whole("so \\[\\sqrt[9]{5}\\] is")).toContain('<span class="math display">\\sqrt[9]{5}</span>');
    expect(whole("so $\\$5 + x$ is")).toContain('<span class="math ">\\$5 + x</span>');
    expect(whole("\\begin{align*}\na_1 &= b\n\\end{align*}")).toContain('<span class="math display">\\begin{align*}\na_1');
    expect(whole("- [1] \\[PDF\\] Tea")).toBe('<ul>\n<li><span class="citation">[1]</span> [PDF] Tea</li>\n</ul>\n');
  });
});

describe("a diagram", () => {
  it("is known by its kind, whatever stands before it", () => {
    expect(kindOf("---\ntitle: T\n---\n%%{init: {}}%%\n%% note\n  flowchart LR\n A --> B")).toBe("flowchart");
  });

  it.each([
    ["mindmap\n a", en.diagramUnknown],
    ["gantt\n excludes weekends\n a :2001-01-01, 8000d", en.diagramUnknown],
    [`flowchart LR\n${"a --> b\n".repeat(100)}`, en.diagramTooLong],
    [`flowchart LR\n a[${"w".repeat(3_000)}]`, en.diagramTooLong],
  ])("is not drawn where its drawing has no bound: %.20s", async (code, why) => {
    await expect(draw(code, false)).rejects.toThrow(why);
  });
});

describe("code", () => {
  it("is coloured by classes alone, where its language is known", () => {
    expect(languageOf({ className: "language-Python" } as Element)).toBe("python");
    expect(coloured('a = "<b>"', "python")).toBe('a = <span class="hljs-string">&quot;&lt;b&gt;&quot;</span>');
    expect(coloured("x", "klingon")).toBeNull();
  });
});

describe("an address", () => {
  it.each([
    ["", { thread: null, reading: null }],
    ["#a%2Fb", { thread: "a/b", reading: null }],
    ["#t/read/r", { thread: "t", reading: "r" }],
    ["#t/write/r", { thread: "t", reading: null }],
    ["#%", { thread: null, reading: null }],
  ])("%s says what is shown", (hash, shown) => expect(addressOf(hash)).toEqual(shown));
});

describe("the name of a file", () => {
  it("is what the service says", () => {
    expect(nameIn("attachment; filename*=UTF-8''%E8%8C%B6.md")).toBe("茶.md");
    expect([nameIn(null), nameIn("attachment; filename*=UTF-8''%")]).toEqual(["", ""]);
  });
});
