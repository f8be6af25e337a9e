/** A small model of the service: one conversation whose runs ask, are answered and end. Pages reach it by `fetch`. */

import type { Interrupt } from "../../src/events";

export type AskedKind = "plan_review" | "approval" | "unknown_result" | "question";

interface ServedRun {
  id: string;
  question: string;
  status: string;
  events: { id: number; type: string }[];
  open: Interrupt | null;
  isAskedByStep: boolean;
  followers: Set<ReadableStreamDefaultController<Uint8Array>>;
}

/** A request with a text that the service accepted. */
export interface Accepted {
  route: "resume" | "messages" | "runs";
  run: string;
  text: unknown;
  /** The form that it answered. */
  form: Interrupt | null;
}

const encoder = new TextEncoder();

export class ServiceModel {
  readonly thread = "t1";
  readonly runs: ServedRun[] = [];
  readonly accepted: Accepted[] = [];
  isUp = true;
  posts = 0;
  /** What a run asks as soon as it continues; null if it works on. */
  asksNext: AskedKind | null = null;
  #asked = 0;

  /** Answer a request as `fetch` does. */
  readonly fetch = (path: string, options: RequestInit = {}): Promise<Response> => {
    if (!this.isUp) return Promise.reject(new TypeError("unreachable"));
    const method = options.method ?? "GET";
    const body = typeof options.body === "string" ? (JSON.parse(options.body) as Record<string, unknown>) : {};
    const response = method === "GET" ? this.#read(path, options) : this.#write(path, body);
    if (method !== "GET" && response.ok) this.posts += 1;
    return Promise.resolve(response);
  };

  get newest(): ServedRun | undefined {
    return this.runs.at(-1);
  }

  get waiting(): ServedRun | undefined {
    return this.runs.findLast((run) => run.status === "interrupted");
  }

  /** Let a run that works ask: all of it, or one of its steps. */
  ask(run: ServedRun, kind: AskedKind, byStep: boolean): void {
    if (run.status !== "running" || run.open) return;
    const isCall = kind === "approval" || kind === "unknown_result";
    const number = ++this.#asked;
    const payload = isCall ? { reason: kind, tool_name: "bash_tool", tool_input: { cmd: `rm ${number}` } } : { question: `Which ${number}?`, plan: { title: `Plan ${number}`, steps: [] } };
    run.open = { interrupt_id: `i-${number}`, kind: isCall ? "tool_approval" : kind, payload, options: [] };
    run.isAskedByStep = byStep;
    if (byStep) return this.#tell(run, "step_interrupt", { ...run.open, step_id: 1, agent_name: "coder" });
    this.#tell(run, "interrupt", { ...run.open });
    this.#end(run, "interrupted");
  }

  end(run: ServedRun, status: string): void {
    if (run.status !== "running") return;
    run.open = null;
    this.#end(run, status);
  }

  /** Answer or retry without the page. */
  continueElsewhere(run: ServedRun): void {
    if (run.open) this.#continue(run);
    else if (run.status === "failed") this.#begin(run);
  }

  breakDown(): void {
    this.isUp = false;
    for (const run of this.runs) for (const follower of run.followers) follower.error(new TypeError("lost"));
    for (const run of this.runs) run.followers.clear();
  }

  #read(path: string, options: RequestInit): Response {
    if (path.startsWith("/api/threads?")) return json({ threads: [], next_before: null });
    if (path === `/api/threads/${this.thread}`) {
      return json({ conversation_id: this.thread, branch_points: [], runs: this.runs.map(({ id, status }) => ({ run_id: id, status })).reverse() });
    }
    if (path.endsWith("/files")) return json({ files: [] });
    const run = this.#runOf(path);
    const after = Number(new Headers(options.headers).get("last-event-id"));
    return new Response(this.#follow(run, after, options.signal ?? null));
  }

  #follow(run: ServedRun, after: number, signal: AbortSignal | null): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>({
      start: (follower) => {
        for (const event of run.events) if (event.id > after) follower.enqueue(frame(event));
        if (run.status !== "running") return follower.close();
        run.followers.add(follower);
        signal?.addEventListener("abort", () => run.followers.delete(follower));
      },
      cancel: () => undefined,
    });
  }

  #write(path: string, body: Record<string, unknown>): Response {
    if (path === "/api/threads") return json({ thread_id: this.thread });
    if (path === `/api/threads/${this.thread}/runs`) return this.#submit(String(body["input"]));
    const run = this.#runOf(path);
    if (path.endsWith("/resume")) return this.#resume(run, body);
    if (path.endsWith("/messages")) return this.#message(run, String(body["content"]));
    if (path.endsWith("/cancel")) {
      if (run.status === "interrupted") run.status = "running";
      this.end(run, "cancelled");
      return json({ status: run.status });
    }
    if (path.endsWith("/retry")) {
      if (run.status !== "failed") return refusal("nothing_to_retry");
      this.#begin(run);
      return json({});
    }
    return run.status === "running" ? json({}) : refusal("plan_not_open");
  }

  #submit(text: string): Response {
    // A text on a conversation that waits is the answer, as in the service.
    const waiting = this.waiting;
    if (waiting) {
      this.accepted.push({ route: "runs", run: waiting.id, text, form: waiting.open });
      this.#continue(waiting);
      return json({ run_id: waiting.id });
    }
    const run: ServedRun = { id: `r${this.runs.length + 1}`, question: text, status: "queued", events: [], open: null, isAskedByStep: false, followers: new Set() };
    this.runs.push(run);
    this.accepted.push({ route: "runs", run: run.id, text, form: null });
    this.#begin(run);
    return json({ run_id: run.id });
  }

  #resume(run: ServedRun, { answer, interrupt_id }: Record<string, unknown>): Response {
    if (!run.open || (interrupt_id && interrupt_id !== run.open.interrupt_id)) return refusal("not_waiting");
    this.accepted.push({ route: "resume", run: run.id, text: answer, form: run.open });
    this.#continue(run);
    return json({ run_id: run.id });
  }

  #message(run: ServedRun, content: string): Response {
    if (run.status !== "running" && run.status !== "interrupted") return refusal("not_working");
    const message_id = `m${this.accepted.length}`;
    this.accepted.push({ route: "messages", run: run.id, text: content, form: null });
    this.#tell(run, "user_message", { message_id, content });
    // The lead of a run that waits has answered when the message is accepted.
    if (run.status === "interrupted") this.#tell(run, "user_message_answer", { message_id, disposition: "answered", content: "It reads a file." });
    return json({ run_id: run.id, message_id });
  }

  #continue(run: ServedRun): void {
    const { open, isAskedByStep } = run;
    run.open = null;
    if (open) this.#tell(run, "user_answer", { interrupt_id: open.interrupt_id, answer: "yes" });
    if (isAskedByStep && run.status === "running") this.#tell(run, "step_resumed", { interrupt_id: open!.interrupt_id, step_id: 1, agent_name: "coder" });
    else this.#begin(run);
    if (this.asksNext) this.ask(run, this.asksNext, false);
    this.asksNext = null;
  }

  #begin(run: ServedRun): void {
    run.status = "running";
    this.#tell(run, "run", { run_id: run.id, thread_id: this.thread });
    this.#tell(run, "start_of_agent", { agent_name: "coder", agent_id: `${run.id}-${run.events.length}` });
  }

  #end(run: ServedRun, status: string): void {
    run.status = status;
    this.#tell(run, "run_status", { status });
    this.#tell(run, "final_session_state", { messages: [] });
    for (const follower of run.followers) follower.close();
    run.followers.clear();
  }

  #tell(run: ServedRun, type: string, fields: object): void {
    const event = { ...fields, id: run.events.length + 1, type };
    run.events.push(event);
    for (const follower of run.followers) follower.enqueue(frame(event));
  }

  #runOf(path: string): ServedRun {
    const id = path.split("/")[3]!;
    return this.runs.find((run) => run.id === id)!;
  }
}

function frame({ id, type, ...fields }: { id: number; type: string }): Uint8Array {
  return encoder.encode(`id: ${id}\nevent: ${type}\ndata: ${JSON.stringify(fields)}\n\n`);
}

function json(body: object): Response {
  return new Response(JSON.stringify(body), { headers: { "content-type": "application/json" } });
}

function refusal(code: string): Response {
  return new Response(JSON.stringify({ code, detail: code }), { status: 409 });
}
