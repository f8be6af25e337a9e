import { render } from "preact-render-to-string";
import { describe, expect, it } from "vitest";
import { BrowserView } from "../src/components/work/BrowserView";
import type { Tab } from "../src/events";
import { Recording } from "../src/recording";

const TABS: Tab[] = [
  { tab_id: 1, url: "https://e.test/", title: "Hats & <b>more</b>", is_current: true },
  { tab_id: 2, url: "https://f.test/", title: "", is_current: false },
];

function shown(recording: Recording): string {
  return render(<BrowserView recording={recording} isLive version={1} />);
}

function look(recording: Recording, tabs: Tab[]): void {
  recording.look({ id: 1, type: "browser_state", url: "https://e.test/", title: "E", tabs, screenshot: null });
}

describe("the view of a browser", () => {
  it("shows an address alone where an agent tells no steps", () => {
    const recording = new Recording();
    look(recording, []);
    expect(shown(recording)).toContain("https://e.test/");
    expect(shown(recording)).not.toContain('type="range"');
  });

  it("shows the tabs when there are several, as the text that they are", () => {
    const recording = new Recording();
    look(recording, TABS.slice(0, 1));
    expect(shown(recording)).not.toContain('class="tabs"');
    look(recording, TABS);
    expect(shown(recording)).toContain("Hats &amp; &lt;b>more&lt;/b>");
    expect(shown(recording)).toContain("https://f.test/");
  });

  it("says in which phase a step is, why it is taken and why it failed", () => {
    const recording = new Recording();
    const action = { name: "click_element", parameters: { index: 3 } };
    const why = { thought: "It is the first.", observation: `Not found ${"because ".repeat(40)}`, success: false };
    recording.step({ id: 1, type: "browser_step", tool_call_id: "c", number: 1, state: "observing", phase: "Find a hat", action, seconds: 1.25, ...why });
    for (const words of ["Find a hat", "It is the first.", `Failed: Not found ${"because ".repeat(40).trim()}`, "clicks [3]", "1.3 s"]) {
      expect(shown(recording)).toContain(words);
    }
  });
});
