import { render } from "preact-render-to-string";
import { describe, expect, it, vi } from "vitest";
import type { RunEvent } from "../src/events";

vi.stubGlobal("sessionStorage", { getItem: () => null, setItem: () => undefined });
const { RunView } = await import("../src/components/chat/RunView");
const { linksOf } = await import("../src/components/work/CallView");
const { RunModel } = await import("../src/run");

const streams = import.meta.glob<RunEvent[]>("./streams/*.json", { eager: true, import: "default" });

describe.each(Object.entries(streams))("%s", (_, events) => {
  it("can be shown after each of its events", () => {
    const run = new RunModel("id1");
    for (const event of [null, ...events]) {
      if (event) run.apply(event);
      expect(render(<RunView run={run} version={run.version} />)).toContain('class="standing');
    }
  });
});

describe("the links of a search", () => {
  it("are web addresses only", () => {
    const found = [{ url: "https://e.test/a", title: "A" }, { url: "javascript:alert(1)" }, { url: "https://" }, null, 7];
    expect(linksOf(JSON.stringify(found))).toEqual([{ url: "https://e.test/a", title: "A" }]);
    expect(linksOf("The search failed.")).toEqual([]);
  });
});
