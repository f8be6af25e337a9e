// What `useStream` of LangGraph's client is made of, without React. node langgraph_client.mjs MODULES_FOLDER URL QUESTION
// Asks, approves what the run asks, and prints one line of JSON: what a page shows at the pause and at the end.
import { createRequire } from "node:module";

const [modules, apiUrl, question] = process.argv.slice(2);
const load = createRequire(`${modules}/`);
const { Client } = load("@langchain/langgraph-sdk");
const { StreamController } = load("@langchain/langgraph-sdk/stream");
const client = new Client({ apiUrl, apiKey: null });

function open(threadId) {
  const controller = new StreamController({ assistantId: "maniple", client, threadId });
  return { controller, store: controller.rootStore, leave: controller.activate() };
}

function until({ store }, holds) {
  return new Promise((resolve) => {
    const look = () => {
      if (!holds(store.getSnapshot())) return;
      stop();
      resolve(store.getSnapshot());
    };
    const stop = store.subscribe(look);
    look();
  });
}

const show = ({ messages, values, interrupt, threadId, error }) => ({
  messages: messages.map((one) => [one.getType(), one.text]),
  steps: values.plan?.steps.map((one) => one.status),
  asked: interrupt?.value.action_requests[0].name,
  threadId,
  error: error ? String(error) : null,
});
const isDone = (now) => !now.isLoading && now.values.plan?.steps.every((one) => one.status === "completed");

const first = open(null);
const submitted = first.controller.submit({ messages: [{ role: "user", content: question }] });
const waiting = show(await until(first, (now) => now.interrupt && !now.isLoading));
await submitted;
await first.controller.respond({ decisions: [{ type: "approve" }] });
const ended = show(await until(first, isDone));
first.leave();
const second = open(ended.threadId); // the page is loaded again
await second.controller.hydrate();
const reloaded = show(await until(second, isDone));
second.leave();
console.log(JSON.stringify({ waiting, ended, reloaded }));
process.exit(0);
