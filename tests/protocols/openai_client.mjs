// OpenAI's own client for JavaScript. node openai_client.mjs MODULES_FOLDER BASE_URL QUESTION
// Prints one line of JSON: what was streamed, the usage and the reason of the end.
import { createRequire } from "node:module";

const [modules, baseURL, question] = process.argv.slice(2);
const OpenAI = createRequire(`${modules}/`)("openai").default;
const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
const stream = client.chat.completions.stream({
  model: "maniple",
  messages: [{ role: "user", content: question }],
  stream_options: { include_usage: true },
});
const final = await stream.finalChatCompletion();
const [choice] = final.choices;
console.log(JSON.stringify({ text: choice.message.content, reason: choice.finish_reason, tokens: final.usage.total_tokens }));
