// AG-UI's own client with a function of the front end. node ag_ui_functions.mjs MODULES_FOLDER URL QUESTION
// Runs the function for each call that has no result yet, as front ends do, until the team has its answer.
// Prints one line of JSON: the calls, the roles of the messages, the last text, and what the last run asks.
import { createRequire } from "node:module";

const [modules, url, question] = process.argv.slice(2);
const { HttpAgent } = createRequire(`${modules}/`)("@ag-ui/client");
const agent = new HttpAgent({ url, initialMessages: [{ id: "q1", role: "user", content: question }] });
const location = { type: "object", properties: { location: { type: "string" } }, required: ["location"] };
const tools = [{ name: "get_weather", description: "Tells the weather.", parameters: location }];
const done = [];
for (let turn = 0; turn < 5; turn += 1) {
  await agent.runAgent({ tools });
  const answered = agent.messages.filter((one) => one.role === "tool").map((one) => one.toolCallId);
  const calls = agent.messages.flatMap((one) => one.toolCalls ?? []).filter((one) => !answered.includes(one.id));
  if (!calls.length) break;
  for (const call of calls) {
    done.push(JSON.parse(call.function.arguments).location);
    agent.addMessage({ id: crypto.randomUUID(), role: "tool", toolCallId: call.id, content: '{"degrees": 30}' });
  }
}
const { messages, pendingInterrupts } = agent;
console.log(JSON.stringify({ done, roles: messages.map((one) => one.role), text: messages.at(-1).content, asked: pendingInterrupts.length }));
