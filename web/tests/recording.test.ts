import { describe, expect, it, vi } from "vitest";
import { describeAction } from "../src/actionText";
import type { RunEvent } from "../src/events";
import { MAX_FRAMES } from "../src/recording";
import { Pictures } from "../src/pictures";
import { RunModel } from "../src/run";
import { en } from "../src/texts/en";
import { zh } from "../src/texts/zh";

const MARK = { x: 0.1, y: 0.2, width: 0.3, height: 0.1 };
const CLICK = { name: "click_element", parameters: { index: 3 } };
let lastId = 0;

function step(number: number, state: string, more: object = {}): RunEvent {
  const empty = { thought: "", action: null, observation: null, seconds: 0, mark: null, element: null, screenshot: null };
  return { id: (lastId += 1), type: "browser_step", tool_call_id: "c", number, state, ...empty, ...more };
}

function look(picture: string | null, url = "https://e.test/"): RunEvent {
  return { id: (lastId += 1), type: "browser_state", url, title: "E", tabs: [], screenshot: picture };
}

function recordingOf(...events: RunEvent[]) {
  const run = new RunModel("r");
  for (const event of events) run.apply(event);
  return run.recording;
}

describe("the recording of a browser", () => {
  it("shows each step on the picture that it was decided on, with its mark", () => {
    const recording = recordingOf(
      step(1, "thinking"),
      step(1, "acting", { action: { name: "go_to_url", parameters: {} } }),
      step(2, "thinking"),
      look("/a"),
      step(2, "acting", { action: CLICK, mark: MARK, screenshot: "/a" }),
      step(2, "observing", { action: CLICK, mark: MARK, screenshot: "/a", success: true }),
      step(3, "thinking"),
      look("/b", "https://e.test/next"),
    );
    expect(recording.frames.map(({ picture, mark, place }) => [picture, mark, place?.url])).toEqual([
      [null, null, undefined],
      ["/a", MARK, "https://e.test/"],
      ["/b", null, "https://e.test/next"],
    ]);
  });

  it("shows what was seen last until the next observation arrives", () => {
    const recording = recordingOf(look("/a"), step(1, "thinking"));
    expect(recording.newest?.picture).toBe("/a");
  });

  it("takes no older picture for that of a step that was not watched", () => {
    const recording = recordingOf(look("/a"), step(1, "thinking"), step(1, "acting", { action: CLICK }));
    expect(recording.newest?.picture).toBe(null);
  });

  it("keeps picture and mark of a step that is sent again after a pause", () => {
    const acts = { action: CLICK, mark: MARK, screenshot: "/a" };
    const recording = recordingOf(step(1, "thinking"), look("/a"), step(1, "acting", acts), step(1, "acting", { action: CLICK }));
    expect(recording.frames.map(({ picture, mark }) => [picture, mark])).toEqual([["/a", MARK]]);
  });

  it("shows the observed picture where an earlier version sent no picture of a step", () => {
    const recording = recordingOf(step(1, "thinking"), look("/a"), step(1, "acting", { action: CLICK, screenshot: undefined }));
    expect(recording.newest?.picture).toBe("/a");
  });

  it("has a frame for each action of an answer", () => {
    const recording = recordingOf(look("/a"), step(1, "thinking"), step(1, "acting", { screenshot: "/a" }), step(2, "acting", { screenshot: "/a" }));
    expect(recording.frames.map((frame) => frame.picture)).toEqual(["/a", "/a"]);
  });

  it("leaves out the first steps of a long run", () => {
    const recording = recordingOf(...Array.from({ length: MAX_FRAMES + 10 }, (_, n) => step(n + 1, "thinking")));
    expect([recording.frames.length, recording.frames[0]?.number, recording.leftOut]).toEqual([MAX_FRAMES, 11, 10]);
  });
});

describe("an action in words", () => {
  it("names what is acted on", () => {
    expect(describeAction(CLICK, { role: "button", name: "Accept" })).toBe("clicks “Accept”");
    expect(describeAction(CLICK, { role: "button", name: "" })).toBe("clicks button");
    expect(describeAction(CLICK, null)).toBe("clicks [3]");
    const typing = { name: "input_text", parameters: { index: 1, text: "a {b} $& c" } };
    expect(describeAction(typing, { role: "input", name: "{text}" })).toBe("types “a {b} $& c” into “{text}”");
  });

  it("is cut, and that of a tool of somebody else is shown as it is", () => {
    expect(describeAction({ name: "go_to_url", parameters: { url: "x".repeat(5_000) } }, null)).toHaveLength(127);
    expect(describeAction({ name: "constructor", parameters: { a: [1] } }, null)).toBe('constructor {"a":[1]}');
  });

  it("has the same templates in both languages", () => {
    const names = (text: string) => text.match(/\{\w+\}/g)?.sort() ?? [];
    for (const [key, template] of Object.entries({ ...en.actions, ...en.recording })) {
      expect(names({ ...zh.actions, ...zh.recording }[key] as string), key).toEqual(names(template));
    }
  });
});

describe("pictures", () => {
  it("are fetched once while they are among the last that were wanted, and given back after that", async () => {
    const load = vi.fn(async (address: string) => new Blob([address]));
    const revoked = vi.spyOn(URL, "revokeObjectURL");
    const pictures = new Pictures(load, 2);
    const first = await pictures.get("/1");
    await pictures.get("/2");
    expect(await pictures.get("/1")).toBe(first);
    await pictures.get("/3");
    await vi.waitFor(() => expect(revoked).toHaveBeenCalledTimes(1));
    expect(await pictures.get("/1")).toBe(first);
    await pictures.get("/2");
    expect(load.mock.calls.map(([address]) => address)).toEqual(["/1", "/2", "/3", "/2"]);
    pictures.clear();
    await vi.waitFor(() => expect(revoked).toHaveBeenCalledTimes(4));
  });

  it("that could not be had are tried again", async () => {
    const load = vi.fn().mockRejectedValueOnce(new Error("away")).mockResolvedValue(new Blob());
    const pictures = new Pictures(load);
    await expect(pictures.get("/1")).rejects.toThrow("away");
    await expect(pictures.get("/1")).resolves.toMatch(/^blob:/);
  });
});
