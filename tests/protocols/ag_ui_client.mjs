// AG-UI's own client. node ag_ui_client.mjs MODULES_FOLDER URL QUESTION
// Prints one line of JSON: the messages and the state after the run, as the client has put them together.
import { createRequire } from "node:module";

const [modules, url, question] = process.argv.slice(2);
const { HttpAgent } = createRequire(`${modules}/`)("@ag-ui/client");
const agent = new HttpAgent({ url, initialMessages: [{ id: "q1", role: "user", content: question }] });
await agent.runAgent({});
const messages = agent.messages.map(({ role, content }) => ({ role, content }));
console.log(JSON.stringify({ messages, state: agent.state }));
