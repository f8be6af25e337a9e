// The protocol's own TypeScript client as an editor.
// node editor.mjs SDK_FOLDER FOLDER QUESTION COMMAND ARGUMENT…
// Prints one line of JSON: the stop reason, the texts of the answer, the plan and the calls, and what was asked.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

const [sdk, cwd, question, command, ...rest] = process.argv.slice(2);
const { PROTOCOL_VERSION, client, methods, ndJsonStream } = await import(`${sdk}/dist/v1/stable/acp.js`);
const agent = spawn(command, rest, { cwd, stdio: ["pipe", "pipe", "ignore"] });
const found = { text: "", plan: [], calls: {}, asked: [] };

function take({ update }) {
  if (update.sessionUpdate === "agent_message_chunk") found.text += update.content.text ?? "";
  if (update.sessionUpdate === "plan") found.plan = update.entries.map((entry) => entry.status);
  if (update.sessionUpdate.startsWith("tool_call")) found.calls[update.toolCallId] = update.status;
}

function allow({ toolCall, options }) {
  found.asked.push(toolCall.title);
  const { optionId } = options.find((option) => option.kind === "allow_once");
  return { outcome: { outcome: "selected", optionId } };
}

const editor = client({ name: "editor" })
  .onNotification(methods.client.session.update, ({ params }) => take(params))
  .onRequest(methods.client.session.requestPermission, ({ params }) => allow(params));
const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
await editor.connectWith(stream, async (team) => {
  await team.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
  const { sessionId } = await team.request(methods.agent.session.new, { cwd, mcpServers: [] });
  const prompt = [{ type: "text", text: question }];
  found.reason = (await team.request(methods.agent.session.prompt, { sessionId, prompt })).stopReason;
});
console.log(JSON.stringify(found));
agent.stdin.end();
