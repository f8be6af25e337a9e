// A client of the official TypeScript SDK whose calls time out.
// node impatient_client.mjs SDK_FOLDER TIMEOUT_MS http URL | stdio COMMAND ARGUMENT…
// Prints a line of JSON for each call. After the timed-out call it waits for a line on its standard input.
import { createInterface } from "node:readline/promises";

const [sdk, timeout, kind, target, ...rest] = process.argv.slice(2);
const load = (module) => import(`${sdk}/dist/esm/client/${module}.js`);
const { Client } = await load("index");

async function connect() {
  if (kind === "http") {
    const { StreamableHTTPClientTransport } = await load("streamableHttp");
    return new StreamableHTTPClientTransport(new URL(target));
  }
  const { StdioClientTransport } = await load("stdio");
  return new StdioClientTransport({ command: target, args: rest, env: process.env, stderr: "ignore" });
}

const client = new Client({ name: "impatient", version: "1" });
await client.connect(await connect());

async function call(name, args, milliseconds) {
  const options = { timeout: milliseconds, onprogress: () => {} };
  try {
    const result = await client.callTool({ name, arguments: args }, undefined, options);
    return { status: result.structuredContent?.status ?? "", run: result.structuredContent?.run_id ?? "", answer: result.structuredContent?.answer ?? "" };
  } catch (error) {
    return { error: error.code };
  }
}

const show = (value) => console.log(JSON.stringify(value));
const lines = createInterface({ input: process.stdin });
show(await call("get_run", {}, 60_000)); // the team is open when this is answered
show(await call("ask_team", { question: "1+3=?" }, Number(timeout)));
show(await call("get_run", {}, 60_000));
await lines.question("");
show(await call("get_run", { wait_seconds: 50 }, 60_000));
lines.close();
await client.close();
