// A chat page of AG-UI's own client that is loaded again in the pause and at the end, and then asks again.
// node ag_ui_chat.mjs MODULES_FOLDER URL QUESTION
// Prints one line of JSON: at each of these moments the messages, what the run asks, and the plan's statuses.
import { createRequire } from "node:module";

const [modules, url, question] = process.argv.slice(2);
const { HttpAgent } = createRequire(`${modules}/`)("@ag-ui/client");
const threadId = crypto.randomUUID();
const user = (content) => ({ id: crypto.randomUUID(), role: "user", content });
const load = () => new HttpAgent({ url, threadId });
const show = ({ messages, pendingInterrupts, state }) => ({
  messages: messages.filter(({ role, content }) => role !== "tool" && content).map(({ id, role, content }) => ({ id, role, content })),
  asked: pendingInterrupts.map((one) => one.id),
  steps: state.plan?.steps.map((one) => one.status),
});
const approve = (agent) => agent.pendingInterrupts.map((one) => ({ interruptId: one.id, status: "resolved", payload: { type: "approve" } }));

const first = load();
first.addMessage(user(question));
await first.runAgent({});
const waiting = show(first);
const second = load(); // the page is loaded again, in the pause
await second.runAgent({});
const loadedWaiting = show(second);
await second.runAgent({ resume: approve(second) });
const ended = show(second);
const third = load();
await third.runAgent({});
const loadedEnded = show(third);
third.addMessage(user("And 2+3?"));
await third.runAgent({});
const askedAgain = show(third);
const fourth = load();
await fourth.runAgent({});
console.log(JSON.stringify({ waiting, loadedWaiting, ended, loadedEnded, askedAgain, loadedLast: show(fourth) }));
