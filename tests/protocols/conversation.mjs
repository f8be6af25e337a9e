// Conversations with the team by the clients that JavaScript has. node conversation.mjs CLIENT MODULES_FOLDER URL
// `ag_ui` takes the id of its thread, too; `acp` a command and its arguments in place of the URL.
// Reads lines of JSON: {"ask": TEXT, "review": BOOL}, {"answer": VALUE}, {"start": TEXT}, {"cancel": true} or, in a
// program that was started again, {"load": true}.
// Prints a line of JSON for each: {"text": what the client shows, or what it is asked}, or {"error": MESSAGE}.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [name, modules, url, ...rest] = process.argv.slice(2);
const require = (path) => createRequire(`${modules}/`)(path);
const importFrom = (path) => import(pathToFileURL(`${modules}/${path}`).href);
const WAIT_SECONDS = 100;
const asText = (given) => (typeof given === "string" ? given : JSON.stringify(given));
const user = (content) => ({ id: crypto.randomUUID(), role: "user", content });
const input = (text) => ({ messages: [{ type: "human", content: text }] });
// LangChain's form of an edit.
const asDecision = (given) =>
  given.type === "edit" ? { decisions: [{ type: "edit", edited_action: { name: "bash_tool", args: given.args } }] } : given;

function openai() {
  const OpenAI = require("openai").default;
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
  const messages = [];
  async function ask(content, review = false) {
    messages.push({ role: "user", content });
    const metadata = { auto_accepted_plan: String(!review) };
    const final = await client.chat.completions.stream({ model: "maniple", messages, metadata }).finalChatCompletion();
    messages.push({ role: "assistant", content: final.choices[0].message.content });
    return messages.at(-1).content;
  }
  return { ask, answer: (given) => ask(asText(given)) };
}

function responses() {
  const OpenAI = require("openai").default;
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
  let previous;
  async function ask(text, review = false) {
    const metadata = { auto_accepted_plan: String(!review) };
    const given = { model: "maniple", input: text, previous_response_id: previous, metadata };
    const made = await client.responses.stream(given).finalResponse();
    previous = made.id;
    if (made.status === "failed") throw new Error(made.error.message);
    return made.output_text;
  }
  async function start(text) {
    previous = (await client.responses.create({ model: "maniple", input: text, background: true })).id;
  }
  const cancel = async () => (await client.responses.cancel(previous)).status;
  return { ask, answer: (given) => ask(asText(given)), start, cancel };
}

function langgraph() {
  const client = new (require("@langchain/langgraph-sdk").Client)({ apiUrl: url, apiKey: null });
  let threadId, runId;
  async function run(payload) {
    threadId ??= (await client.threads.create()).thread_id;
    let values;
    for await (const part of client.runs.stream(threadId, "maniple", { streamMode: "values", ...payload })) {
      if (part.event === "error") throw new Error(part.data.message);
      if (part.event === "values") values = part.data;
    }
    return values.__interrupt__ ? JSON.stringify(values.__interrupt__) : values.messages.at(-1).content;
  }
  const ask = (text, review = false) => run({ input: input(text), context: { auto_accepted_plan: !review } });
  async function start(text) {
    threadId = (await client.threads.create()).thread_id;
    runId = (await client.runs.create(threadId, "maniple", { input: input(text) })).run_id;
  }
  async function cancel() {
    await client.runs.cancel(threadId, runId, true);
    return (await client.runs.get(threadId, runId)).status;
  }
  return { ask, answer: (given) => run({ command: { resume: asDecision(given) } }), start, cancel };
}

function langgraphEvents() {
  const client = new (require("@langchain/langgraph-sdk").Client)({ apiUrl: url, apiKey: null });
  const { StreamController } = require("@langchain/langgraph-sdk/stream");
  const controller = new StreamController({ assistantId: "maniple", client, threadId: null });
  const store = controller.rootStore;
  controller.activate();
  const until = (holds) =>
    new Promise((resolve) => {
      const look = () => holds(store.getSnapshot()) && resolve(store.getSnapshot());
      store.subscribe(look);
      look();
    });
  async function settle() {
    const { threadId } = await until((now) => now.threadId);
    const [run] = await client.runs.list(threadId, { limit: 1 });
    await client.runs.join(threadId, run.run_id);
    const { status } = await client.threads.get(threadId);
    const isShown = { interrupted: (now) => now.interrupt, idle: (now) => !now.interrupt, error: (now) => now.error }[status];
    const now = await until((one) => !one.isLoading && isShown(one));
    if (now.error) throw now.error;
    return status === "interrupted" ? JSON.stringify(now.interrupt) : now.messages.at(-1).text;
  }
  async function ask(text, review = false) {
    await controller.submit(input(text), { config: { configurable: { auto_accepted_plan: !review } } });
    return settle();
  }
  async function answer(given) {
    await controller.respond(asDecision(given));
    return settle();
  }
  async function start(text) {
    controller.submit(input(text)).catch(() => {});
  }
  async function cancel() {
    const { threadId } = await until((now) => now.threadId && now.isLoading);
    await controller.stop();
    await until((now) => !now.isLoading);
    const [run] = await client.runs.list(threadId, { limit: 1 });
    return run.status;
  }
  return { ask, answer, start, cancel };
}

function agUi() {
  const { HttpAgent } = require("@ag-ui/client");
  const agent = new HttpAgent({ url: `${url}/ag-ui`, threadId: rest[0] });
  async function run(parameters) {
    let failure;
    await agent.runAgent(parameters, { onRunErrorEvent: ({ event }) => void (failure = event) });
    if (failure) throw failure;
    return agent.pendingInterrupts.length ? JSON.stringify(agent.pendingInterrupts) : agent.messages.at(-1).content;
  }
  function ask(text, review = false) {
    agent.addMessage(user(text));
    return run({ forwardedProps: { auto_accepted_plan: !review } });
  }
  const resolve = (given) => agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload: given }));
  async function load() {
    await agent.runAgent({});
    return agent.messages.map(({ role, content }) => (role === "assistant" ? content : "")).join("");
  }
  return { ask, answer: (given) => run({ resume: resolve(given) }), load };
}

async function mcp() {
  const { Client, StreamableHTTPClientTransport } = await importFrom("@modelcontextprotocol/client/dist/index.mjs");
  const client = new Client({ name: "typescript", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
  let thread, runId;
  async function call(name, given) {
    const result = await client.callTool({ name, arguments: given }, { timeout: WAIT_SECONDS * 1000 });
    if (result.isError) throw new Error(result.content[0].text);
    ({ thread_id: thread, run_id: runId } = result.structuredContent);
    return result.structuredContent;
  }
  async function ask(text, review = false) {
    const thread_id = thread ? { thread_id: thread } : {};
    const run = await call("ask_team", { question: text, review_plan: review, wait_seconds: WAIT_SECONDS, ...thread_id });
    return run.status === "interrupted" ? JSON.stringify(run.waits_for) : run.answer;
  }
  const start = (text) => call("ask_team", { question: text, wait_seconds: 0 });
  const cancel = async () => (await call("cancel_run", { run_id: runId })).status;
  const load = async () => (await call("get_run", { wait_seconds: WAIT_SECONDS })).answer;
  return { ask, answer: (given) => ask(asText(given)), start, cancel, load };
}

async function acp() {
  const { PROTOCOL_VERSION, client, methods, ndJsonStream } = await importFrom("@agentclientprotocol/sdk/dist/v1/stable/acp.js");
  const cwd = process.cwd();
  const program = spawn(url, rest, { cwd, stdio: ["pipe", "pipe", "ignore"] });
  let shown = "", pending;
  const take = ({ update }) => {
    if (update.sessionUpdate === "agent_message_chunk") shown += update.content.text ?? "";
  };
  // The last option leaves the decision to the next prompt.
  const defer = ({ toolCall, options }) => {
    shown += JSON.stringify(toolCall);
    return { outcome: { outcome: "selected", optionId: options.at(-1).optionId } };
  };
  const editor = client({ name: "editor" })
    .onNotification(methods.client.session.update, ({ params }) => take(params))
    .onRequest(methods.client.session.requestPermission, ({ params }) => defer(params));
  const stream = ndJsonStream(Writable.toWeb(program.stdin), Readable.toWeb(program.stdout));
  const team = await new Promise((resolve) => editor.connectWith(stream, (it) => (resolve(it), new Promise(() => {}))));
  await team.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
  const { sessionId } = await team.request(methods.agent.session.new, { cwd, mcpServers: [] });
  const prompt = (text) => team.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
  async function ask(text, review = false) {
    if (review) await team.request(methods.agent.session.setMode, { sessionId, modeId: "review" });
    shown = "";
    await prompt(text);
    return shown;
  }
  const start = async (text) => void (pending = prompt(text));
  async function cancel() {
    await team.notify(methods.agent.session.cancel, { sessionId });
    return (await pending).stopReason;
  }
  const close = () => program.stdin.end();
  return { ask, answer: (given) => ask(asText(given)), start, cancel, close };
}

const CLIENTS = { openai, responses, langgraph, langgraph_events: langgraphEvents, ag_ui: agUi, mcp, acp };
const client = await CLIENTS[name]();
for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  const [action] = Object.keys(asked);
  const done = client[action](asked[action], asked.review);
  const shown = await Promise.resolve(done).then((text) => ({ text: text ?? "" }), (error) => ({ error: String(error.message ?? error) }));
  console.log(JSON.stringify(shown));
}
client.close?.();
if (!client.close) process.exit(0);
