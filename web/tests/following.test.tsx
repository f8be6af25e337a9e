import fc from "fast-check";
import { render } from "preact-render-to-string";
import { beforeAll, describe, expect, it, vi } from "vitest";
import type { Interrupt } from "../src/events";
import { type AskedKind, ServiceModel } from "./support/service";

vi.stubGlobal("document", { hidden: false });
vi.stubGlobal("history", { replaceState: () => undefined });
vi.stubGlobal("requestAnimationFrame", (work: () => void) => setTimeout(work, 0));

const conversation = await import("../src/conversation");
const { yieldToBrowser } = await import("../src/scheduling");
const { sendDraft, typed } = await import("../src/composing");
const { approval, rejection } = await import("../src/decisions");
const { draftOf, keepDraft } = await import("../src/drafts");
const { keyOf, suggestedForm } = await import("../src/purpose");
const { RunView } = await import("../src/components/chat/RunView");
const { FormsOf } = await import("../src/components/plan/PendingForms");
const { ServiceContext } = await import("../src/components/service");
const { live } = await import("../src/backend");

const CHOICES = { deep_thinking_mode: false, search_before_planning: false, auto_accepted_plan: true, team_members: null, depth: null, report_style: null, effort: null, budget: null, model: null };
/** How often other tasks are let through at least, and at most until the page has followed: far less than a second. */
const MIN_TURNS = 30;
const MAX_TURNS = 1_000;

/** A person at the page. Their texts are unique, so that it is known where each arrives. */
class Person {
  readonly service = new ServiceModel();
  /** The form for which a text was begun; null for the team. */
  readonly begun = new Map<string, string | null>();
  #texts = 0;

  get draft() {
    return draftOf(conversation.openId.value);
  }

  type(words: string): void {
    const text = `${words} ${++this.#texts}`;
    const before = this.draft;
    if (!before.text) {
      const form = suggestedForm(conversation.openRuns());
      this.begun.set(text, form ? keyOf(form.asked) : null);
    }
    keepDraft(conversation.openId.value, typed(before, before.text || text));
  }

  async send(): Promise<void> {
    await sendDraft(CHOICES, () => undefined);
  }

  /** Use a button of the newest form that is shown. */
  async press(isYes: boolean): Promise<void> {
    const run = conversation.openRuns().findLast(({ forms }) => forms.length > 0);
    const form = run?.forms.at(-1);
    if (run && form) await conversation.answer(run, form, isYes ? approval : rejection("not now"));
  }
}

const kinds = fc.constantFrom<AskedKind>("plan_review", "approval", "unknown_result", "question");
const commands = fc.oneof(
  fc.record({ do: fc.constant("ask" as const), kind: kinds, byStep: fc.boolean() }),
  fc.record({ do: fc.constant("askNext" as const), kind: kinds }),
  fc.record({ do: fc.constant("type" as const), words: fc.constantFrom("use euros", "yes and more", "/reject it", "no") }),
  fc.record({ do: fc.constant("press" as const), isYes: fc.boolean() }),
  fc.record({ do: fc.constantFrom("send", "send", "finish", "fail", "cancel", "retry", "askAgain", "changePlan", "elsewhere", "down", "up", "lost", "poll", "poll") }),
);
type Command = typeof commands extends fc.Arbitrary<infer One> ? One : never;

async function perform(person: Person, command: Command): Promise<void> {
  const { service } = person;
  const run = conversation.openRuns().at(-1);
  switch (command.do) {
    case "ask":
      return void (service.newest && service.ask(service.newest, command.kind, command.byStep));
    case "askNext":
      return void (service.asksNext = command.kind);
    case "type":
      return person.type(command.words);
    case "press":
      return person.press(command.isYes);
    case "send":
      return person.send();
    case "finish":
    case "fail":
      return void (service.newest && service.end(service.newest, command.do === "fail" ? "failed" : "completed"));
    case "elsewhere":
      return void (service.newest && service.continueElsewhere(service.newest));
    case "down":
      return service.breakDown();
    case "lost":
      service.breakDown();
      return void (service.isUp = true);
    case "up":
      return void (service.isUp = true);
    case "cancel":
      return void (run && (await conversation.cancel(run)));
    case "retry":
      return void (run && (await conversation.retry(run)));
    case "askAgain":
      return void (run?.isOver && (await conversation.askAgain(run.question, CHOICES)));
    case "changePlan":
      return void (run && (await conversation.changePlan(run, { action: "skip", step_id: 1 })));
    case "poll":
      return conversation.showEarlier();
  }
}

/** Let the page work until it shows what the service asks. */
async function settle(service: ServiceModel): Promise<void> {
  for (let turn = 0; turn < MAX_TURNS; turn += 1) {
    await yieldToBrowser();
    if (turn >= MIN_TURNS && (!service.isUp || isInStep(service))) return;
  }
}

function isInStep(service: ServiceModel): boolean {
  const shown = conversation.openRuns().flatMap((run) => run.forms.map((one) => `${run.runId} ${keyOf(one)}`));
  return JSON.stringify(shown) === JSON.stringify(openForms(service));
}

function shownForms(): string[] {
  return conversation.openRuns().flatMap((run) => {
    const shown = render(<ServiceContext.Provider value={live}><RunView run={run} version={run.version} /><FormsOf runs={[run]} /></ServiceContext.Provider>);
    expect(shown.split('class="interrupt"').length - 1).toBe(run.forms.length);
    return run.forms.map((one) => `${run.runId} ${keyOf(one)}`);
  });
}

function openForms({ runs }: ServiceModel): string[] {
  return runs.flatMap(({ id, open }) => (open ? [`${id} ${keyOf(open as Interrupt)}`] : []));
}

/** No text may have another purpose than the one for which it was begun. */
function checkPurposes({ service, begun }: Person): void {
  for (const { route, text, form } of service.accepted) {
    if (route === "runs") expect(form).toBeNull();
    const purpose = begun.get(String(text));
    if (route === "resume" && purpose !== undefined) expect(keyOf(form!)).toBe(purpose);
  }
}

describe("a person and the team", () => {
  beforeAll(() => fc.configureGlobal({ numRuns: 400 }));

  it("stay in step after each accepted request, and no text changes its purpose", { timeout: 100_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(commands, { minLength: 3, maxLength: 18 }), async (sequence) => {
        const person = new Person();
        vi.stubGlobal("fetch", person.service.fetch);
        await conversation.open(null);
        keepDraft(null, { text: "", files: [], purpose: null });
        keepDraft(person.service.thread, { text: "", files: [], purpose: null });
        person.type("first");
        await person.send();
        await settle(person.service);
        for (const command of sequence) {
          const before = person.service.posts;
          await perform(person, command);
          const isDue = person.service.posts > before || command.do === "poll";
          await settle(person.service);
          checkPurposes(person);
          if (isDue && person.service.isUp) expect(shownForms()).toEqual(openForms(person.service));
        }
        await conversation.open(null);
      }),
    );
  });
});
