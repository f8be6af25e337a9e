// A front end over the types that openapi-typescript makes from the document: no type of its own, no cast.
// node client.mjs URL. Prints one line of JSON: what the runs did.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { argv: string[] };
type Event = components["schemas"]["StoredEvent"];
const client = createClient<paths>({ baseUrl: process.argv[2] });

async function start(thread_id: string, body: components["schemas"]["RunBody"]): Promise<string> {
  const { data, error } = await client.POST("/api/threads/{thread_id}/runs", { params: { path: { thread_id } }, body });
  if (error) throw new Error(String(error.detail));
  return data.run_id;
}

async function* follow(run_id: string, after = 0): AsyncGenerator<Event> {
  for (;;) {
    const params = { path: { run_id }, query: { after } };
    const { data, error } = await client.GET("/api/runs/{run_id}/events/page", { params });
    if (error) throw new Error(String(error.detail));
    yield* data.events;
    after = data.next_after;
    if (data.status !== "queued" && data.status !== "running" && data.events.length === 0) return;
    if (data.events.length === 0) await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function main(): Promise<void> {
  const { data: thread, error } = await client.POST("/api/threads", { body: { title: "Sums" } });
  if (error) throw new Error(String(error.detail));
  const { thread_id } = thread;
  const run_id = await start(thread_id, { input: "1+3=?", auto_accepted_plan: false });
  const numbers: number[] = [];
  const steps: string[] = [];
  let answer = "";
  const take = (event: Event): void => {
    numbers.push(event.number);
    if (event.event === "plan") steps.splice(0, steps.length, ...event.data.steps.map((step) => step.status));
    if (event.event === "final_session_state") answer = String(event.data.messages.at(-1)?.content);
  };
  for await (const event of follow(run_id)) take(event);
  const path = { path: { run_id } };
  const { data: waiting } = await client.GET("/api/runs/{run_id}", { params: path });
  const asked = waiting?.interrupts.map((one) => one.kind);
  const reviewed = [...steps];
  await client.POST("/api/runs/{run_id}/resume", { params: path, body: { answer: "accept" } });
  for await (const event of follow(run_id, numbers.at(-1))) take(event);
  const { data: ended } = await client.GET("/api/runs/{run_id}", { params: path });

  const other = await start(thread_id, { input: "Hello" });
  const cancelled = await client.POST("/api/runs/{run_id}/cancel", { params: { path: { run_id: other } } });
  const statuses = { waiting: waiting?.status, ended: ended?.status, other: cancelled.data?.status };
  console.log(JSON.stringify({ numbers, asked, reviewed, steps, answer, statuses }));
}

await main();
