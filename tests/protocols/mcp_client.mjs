// The TypeScript SDK of MCP with its Tasks package. node mcp_client.mjs MODULES_FOLDER URL ACTION ARGUMENT
// ask QUESTION: waits for the task's result. leave QUESTION: leaves the task after 5 s. attach and cancel take the
// reference of a task that was left. Prints one line of JSON.
import { pathToFileURL } from "node:url";

const [modules, url, action, argument] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(`${modules}/@modelcontextprotocol/${path}`).href);
const { Client, StreamableHTTPClientTransport } = await load("client/dist/index.mjs");
const { createTaskSessionFromClient } = await load("ext-tasks/dist/client/index.js");

const PROTOCOL = "2026-07-28";
const clientInfo = { name: "typescript", version: "1" };
const capabilities = { elicitation: { form: {} } };
const client = new Client(clientInfo, { capabilities, versionNegotiation: { mode: "auto" } });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));

// What the SDK does not pass through yet (results of the type "task") is the host's to send, as the package says.
async function rawDispatch(request, options = {}) {
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": PROTOCOL,
    "mcp-method": request.method,
    "mcp-name": request.params.taskId ?? request.params.name,
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, ...request });
  const answer = await fetch(url, { method: "POST", headers, body, signal: options.signal });
  const text = await answer.text();
  if (!answer.headers.get("content-type").startsWith("text/event-stream")) return JSON.parse(text);
  const messages = text.split("\n").filter((line) => line.startsWith("data: ")).map((line) => JSON.parse(line.slice(6)));
  return messages.find((message) => "result" in message || "error" in message);
}

const forms = [];
const session = createTaskSessionFromClient(client, {
  endpointId: "maniple",
  rawDispatch,
  v2RequestFraming: { protocolVersion: PROTOCOL, clientInfo, clientCapabilities: capabilities },
  onInputRequest: async (request) => {
    forms.push(request.params.message);
    return { action: "accept", content: { answer: "2026" } };
  },
});

async function settle(execution) {
  const { outcome } = await execution.settle();
  const { structuredContent: run } = outcome.result ?? {};
  return { kind: execution.kind, status: outcome.status, forms, run: run?.run_id, answer: run?.answer };
}

const ACTIONS = {
  async ask() {
    const { tools } = await client.listTools();
    const found = await settle(await session.callTool("ask_team", { question: argument }));
    return { ...found, era: client.getProtocolEra(), tools: tools.map((tool) => tool.name) };
  },
  async leave() {
    const execution = await session.callTool("ask_team", { question: argument });
    const signal = AbortSignal.timeout(5_000);
    const left = await execution.settle({ signal, close: false }).then(() => "settled", () => "left");
    return { left, reference: JSON.stringify(execution.serializeReference()) };
  },
  async attach() {
    return settle(await session.resumeTask(JSON.parse(argument)));
  },
  async cancel() {
    const { taskId } = JSON.parse(argument);
    await session.cancelTask(taskId);
    return { status: (await session.task(taskId).snapshot()).status };
  },
};

console.log(JSON.stringify(await ACTIONS[action]()));
process.exit(0);
