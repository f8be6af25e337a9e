import { beforeEach, expect, it, vi } from "vitest";

vi.stubGlobal("document", { hidden: false });
vi.stubGlobal("history", { pushState: () => undefined });
vi.stubGlobal("requestAnimationFrame", (work: () => void) => setTimeout(work, 0));

const { branch, open, openId } = await import("../src/conversation");
const { draftOf, keepDraft } = await import("../src/drafts");
const { forTeam } = await import("../src/purpose");
const { isReviewing, setReviewing } = await import("../src/reviewing");
const { RunModel } = await import("../src/run");

const CHOICES = { deep_thinking_mode: false, search_before_planning: false, auto_accepted_plan: true, team_members: null, depth: null, report_style: null, effort: "high", budget: null, model: "other" };
const NOTHING = { text: "", files: [], purpose: null };
const run = new RunModel("r1", "1+3=?", "completed");
const posted: { path: string; body: unknown }[] = [];
/** What a person does while the service makes the branch. */
let meanwhile: () => Promise<void>;

async function served(path: string, options: RequestInit = {}): Promise<Response> {
  if (options.method === "POST") {
    posted.push({ path, body: JSON.parse(options.body as string) });
    await meanwhile();
    return Response.json({ run_id: "r2", thread_id: "t2" });
  }
  return Response.json({ conversation_id: "t1", branch_points: [], runs: [], threads: [], next_before: null, files: [] });
}

beforeEach(async () => {
  vi.stubGlobal("fetch", served);
  posted.length = 0;
  meanwhile = () => Promise.resolve();
  for (const thread of ["t1", "t2", null]) {
    keepDraft(thread, NOTHING);
    setReviewing(thread, false);
  }
  await open("t1");
});

it("takes the text and the files that are not sent yet to the branch", async () => {
  const draft = { text: "half a thought", files: [new File(["1"], "a.csv")], purpose: forTeam };
  keepDraft("t1", draft);
  expect(await branch(run, "", CHOICES)).toBe(true);
  expect(openId.value).toBe("t2");
  expect(draftOf("t2")).toEqual(draft);
  expect(draftOf("t1")).toEqual(NOTHING);
});

it.each([true, false])("goes on with the choice to review plans (%s), which new conversations do not take from it", async (isChosen) => {
  setReviewing("t1", isChosen);
  setReviewing(null, !isChosen);
  await branch(run, "1+4=?", CHOICES);
  expect([isReviewing("t2"), isReviewing("t1"), isReviewing(null)]).toEqual([isChosen, isChosen, !isChosen]);
});

it("leaves the text where it is if the person has opened another conversation", async () => {
  keepDraft("t1", { ...NOTHING, text: "half a thought" });
  meanwhile = () => open("t3");
  await branch(run, "", CHOICES);
  expect(openId.value).toBe("t3");
  expect([draftOf("t1").text, draftOf("t2").text]).toEqual(["half a thought", ""]);
});

it("asks with the options that are chosen now, and with another text if there is one", async () => {
  await branch(run, "1+4=?", CHOICES);
  await branch(run, "", CHOICES);
  const path = "/api/runs/r1/branch";
  expect(posted).toEqual([
    { path, body: { input: "1+4=?", run: CHOICES } },
    { path, body: { run: CHOICES } },
  ]);
});
