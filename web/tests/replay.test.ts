import { signal } from "@preact/signals";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { RunEvent, EventFields } from "../src/events";
import { playbackTimes } from "../src/replay/playbackTimes";
import { eventIn } from "../src/replay/moment";
import { Player } from "../src/replay/player";
import type { Shared } from "../src/replay/shared";
import { serviceIn, sharedIn } from "../src/replay/shared";

const TALK: EventFields[] = [
  { type: "run", run_id: "r1", thread_id: "t1" },
  { type: "start_of_agent", agent_name: "coordinator", agent_id: "a1" },
  { type: "message", message_id: "m1", delta: { content: "Hel" } },
  { type: "message", message_id: "m1", delta: { content: "lo" } },
  { type: "run_status", status: "completed" },
  { type: "final_session_state", messages: [] },
];

function happened(events: EventFields[], at: number[] = []): RunEvent[] {
  return events.map((event, index) => ({ ...event, id: index + 1, ...(at.length > 0 ? { at: at[index]! } : {}) }));
}

function shared(sent: EventFields[], at: number[] = []): Shared {
  const events = happened(sent, at);
  return { runId: "r1", question: "Hi?", status: "completed", error: "", createdAt: 1, events, leftOut: { events: 0, pictures: 0, unreadable: 0 } };
}

/** A file of which only the texts of its data blocks count. */
function file(blocks: Record<string, string>): ParentNode {
  const querySelector = (name: string) => ({ textContent: blocks[name.slice(1)] ?? "" });
  return { querySelector } as unknown as ParentNode;
}

describe("the pace of a play", () => {
  it("is the run's own, with its long waits shortened", () => {
    expect(playbackTimes(happened(TALK, [10, 10.5, 70, 70.2, 70.2, 70.3]))).toEqual([0, 500, 2_500, 2_700, 2_700, 2_800].map((ms) => expect.closeTo(ms)));
  });

  it("does not run backwards where members worked at the same time", () => {
    expect(playbackTimes(happened(TALK.slice(0, 4), [10, 11, 10.2, 11.1]))).toEqual([0, 1_000, 1_000, 1_100].map((ms) => expect.closeTo(ms)));
  });

  it("is made up where nobody knows the times", () => {
    expect(playbackTimes(happened(TALK))).toEqual([0, 400, 430, 460, 460, 460]);
  });
});

describe("a player", () => {
  let frames: ((now: number) => void)[] = [];
  let now = 0;
  const pass = (milliseconds: number) => {
    now += milliseconds;
    for (const frame of frames.splice(0)) frame(now);
  };
  beforeEach(() => {
    frames = [];
    now = 0;
    vi.stubGlobal("requestAnimationFrame", (frame: (now: number) => void) => frames.push(frame));
    vi.stubGlobal("cancelAnimationFrame", (handle: number) => frames.splice(handle - 1, 1));
    vi.spyOn(performance, "now").mockImplementation(() => now);
  });

  it("shows at first how the run ended", () => {
    const player = new Player(shared(TALK));
    expect([player.run.status, player.run.answer?.content, player.run.question]).toEqual(["completed", "Hello", "Hi?"]);
  });

  it("plays from the beginning to the end, and then rests", () => {
    const player = new Player(shared(TALK));
    player.play();
    expect([player.run.status, player.run.answer]).toEqual(["queued", null]);
    pass(440);
    expect(player.run.answer?.content).toBe("Hel");
    pass(1_000);
    expect([player.run.status, player.position.value, player.isPlaying.value]).toEqual(["completed", player.length, false]);
    expect(frames).toEqual([]);
  });

  it("does not go back where its first frame began before the play", () => {
    const player = new Player(shared(TALK));
    player.play();
    const { run } = player;
    pass(-5);
    expect([player.position.value, player.run === run]).toEqual([0, true]);
  });

  it("plays at the chosen speed, and stays at its position while paused", () => {
    const player = new Player(shared(TALK));
    player.speed.value = 4;
    player.play();
    pass(105);
    player.rest();
    pass(105);
    expect([player.position.value, player.run.answer?.content]).toEqual([420, undefined]);
  });

  it("has the run's own time", () => {
    const player = new Player(shared(TALK, [10, 10.5, 70, 70.2, 70.2, 70.3]));
    expect(player.clock.now.value).toBeCloseTo(70.3);
    player.seek(750);
    expect(player.clock.now.value).toBeCloseTo(10.75);
    expect(new Player(shared(TALK)).clock.now.value).toBe(0);
  });

  it("goes back and on as the person wants", () => {
    const player = new Player(shared(TALK));
    player.seek(435);
    expect(player.run.answer?.content).toBe("Hel");
    player.seek(100);
    expect(player.run.answer).toBe(null);
    player.toEnd();
    expect(player.run.answer?.content).toBe("Hello");
  });

  it("skips an event that cannot be played", () => {
    const broken = { type: "start_of_workflow" } as EventFields;
    const warned = vi.spyOn(console, "warn").mockReturnValue();
    const player = new Player({ ...shared([broken, ...TALK]), question: "" });
    expect([player.run.status, player.unreadable.size]).toEqual(["completed", 1]);
    player.seek(0);
    player.toEnd();
    expect(player.unreadable.size).toBe(1);
    expect(warned).toHaveBeenCalled();
  });

  it("opens at the moment of an event, or of the last one before it", () => {
    const player = new Player(shared(TALK, [10, 10.5, 11, 12, 13, 14]));
    player.seekEvent(3);
    expect([player.event, player.run.answer?.content]).toEqual([3, "Hel"]);
    player.seekEvent(99);
    expect([player.event, player.run.status]).toEqual([6, "completed"]);
    player.seekEvent(0);
    expect(player.run.answer).toBe(null);
  });

  it("reads the moment from the address", () => {
    expect(["#event=12", "#event=", "#event=-1", "#thread", "#/read/r1", ""].map(eventIn)).toEqual([12, null, null, null, null, null]);
  });
});

describe("a file", () => {
  const events = '{"id":1,"type":"run","at":5.5,"data":{}}\n}{\n7\n{"id":3,"type":"run_status","data":{"status":"failed"}}\n';

  it("is read line by line, without what is malformed", () => {
    const run = '{"run_id":"r1","question":"\\u003cb>","status":"failed","error":"killed","created_at":5}';
    const read = sharedIn(file({ run, events, "left-out": '{"events":2,"pictures":1}' }));
    expect(read).toEqual({
      runId: "r1",
      question: "<b>",
      status: "failed",
      error: "killed",
      createdAt: 5,
      events: [
        { type: "run", id: 1, at: 5.5 },
        { type: "run_status", id: 3, status: "failed" },
      ],
      leftOut: { events: 2, pictures: 1, unreadable: 2 },
    });
    expect(sharedIn(file({})).events).toEqual([]);
  });

  it("has what is enclosed, nothing else, and lets nobody do anything", async () => {
    const enclosures = JSON.stringify({ path: "/api/artifacts/a1", content: `data:image/png;base64,${btoa("é\n")}` });
    const service = serviceIn(file({ enclosures }), { now: signal(0), watch: () => () => undefined });
    const response = await service.ask("/api/artifacts/a1");
    expect([response.headers.get("content-type"), await response.text()]).toEqual(["image/png", "\ufffd\n"]);
    expect([service.has("/api/artifacts/a1"), service.has("/api/artifacts/a2"), service.acts]).toEqual([true, false, null]);
    await expect(service.ask("/api/artifacts/a2")).rejects.toThrow();
  });
});
