import { beforeEach, describe, expect, it, vi } from "vitest";
import { Refusal } from "../src/api";
import type { Service } from "../src/components/service";
import { finishedReport } from "../src/finished";

/** A service that gives one answer after another, and lists what was requested. */
function serviceWith(...answers: (string | Error)[]): { service: Service; asked: string[] } {
  const asked: string[] = [];
  const ask = async (path: string) => {
    const answer = answers[asked.length];
    asked.push(path);
    if (answer instanceof Error) throw answer;
    return new Response(answer);
  };
  return { service: { ask, has: (path: string) => !path.includes("absent") } as unknown as Service, asked };
}

const refusal = (status: number) => new Refusal(status, "", "", null);

describe("a finished report", () => {
  beforeEach(() => void vi.useFakeTimers());

  it("is requested once for each text of a run", async () => {
    const { service, asked } = serviceWith("<p>One</p>", "<p>Two</p>");
    expect(await finishedReport(service, "a/b", "One")).toBe("<p>One</p>");
    expect(await finishedReport(service, "a/b", "One")).toBe("<p>One</p>");
    expect(await finishedReport(service, "a/b", "Two")).toBe("<p>Two</p>");
    expect(asked).toEqual(["/api/runs/a%2Fb/report/body", "/api/runs/a%2Fb/report/body"]);
  });

  it("is requested again while the service has not stored that its run has ended", async () => {
    const { service, asked } = serviceWith(refusal(409), refusal(409), "<p>One</p>");
    const report = finishedReport(service, "late", "One");
    await vi.runAllTimersAsync();
    expect([await report, asked.length]).toEqual(["<p>One</p>", 3]);
  });

  it("is none where the service has none, and requested again the next time", async () => {
    const { service, asked } = serviceWith(refusal(404), "<p>One</p>");
    expect(await finishedReport(service, "failed", "One")).toBeNull();
    expect(await finishedReport(service, "failed", "One")).toBe("<p>One</p>");
    expect(await finishedReport(service, "absent", "One")).toBeNull();
    expect(asked).toHaveLength(2);
  });

  it("is given up after some refusals", async () => {
    const { service, asked } = serviceWith(...Array.from({ length: 9 }, () => refusal(409)));
    const report = finishedReport(service, "waiting", "One");
    await vi.runAllTimersAsync();
    expect([await report, asked.length]).toEqual([null, 4]);
  });
});
