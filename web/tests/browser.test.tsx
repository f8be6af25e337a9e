import { render } from "preact-render-to-string";
import { describe, expect, it } from "vitest";
import { BrowserView } from "../src/components/work/BrowserView";
import type { Tab } from "../src/events";
import { Recording } from "../src/recording";

const TABS: Tab[] = [
  { tab_id: 1, url: "https://e.test/", title: "Hats & <b>more</b>", is_current: true },
  { tab_id: 2, url: "https://f.test/", title: "", is_current: false },
];

function shown(film: Recording): string {
  return render(<BrowserView film={film} isLive version={1} />);
}

function look(film: Recording, tabs: Tab[]): void {
  film.look({ id: 1, type: "browser_state", url: "https://e.test/", title: "E", tabs, screenshot: null });
}

describe("the view of a browser", () => {
  it("shows an address alone where an agent tells no steps", () => {
    const film = new Recording();
    look(film, []);
    expect(shown(film)).toContain("https://e.test/");
    expect(shown(film)).not.toContain('type="range"');
  });

  it("shows the tabs when there are several, as the text that they are", () => {
    const film = new Recording();
    look(film, TABS.slice(0, 1));
    expect(shown(film)).not.toContain('class="tabs"');
    look(film, TABS);
    expect(shown(film)).toContain("Hats &amp; &lt;b>more&lt;/b>");
    expect(shown(film)).toContain("https://f.test/");
  });

  it("says in which phase a step is, why it is taken and why it failed", () => {
    const film = new Recording();
    const action = { name: "click_element", parameters: { index: 3 } };
    const why = { thought: "It is the first.", observation: `Not found ${"because ".repeat(40)}`, success: false };
    film.step({ id: 1, type: "browser_step", tool_call_id: "c", number: 1, state: "observing", phase: "Find a hat", action, seconds: 1.25, ...why });
    for (const words of ["Find a hat", "It is the first.", `Failed: Not found ${"because ".repeat(40).trim()}`, "clicks [3]", "1.3 s"]) {
      expect(shown(film)).toContain(words);
    }
  });
});
