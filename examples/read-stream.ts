/* Ask the team over HTTP and read the events of its run with `fetch` alone (Node 22.18 or later).

    node examples/read-stream.ts "1+3=?" [http://127.0.0.1:8000]

Prints the calls of tools, the answer as it is written, and how the run ended. After a lost connection
`followRun` continues behind the last event, so that none is missing or yielded twice. The exit status is 0 if
the run completed, 2 if it waits for an answer, else 1. The API key, if the server wants one, is read from the
variable TEAM_API_KEY. */

interface Frame {
  number: number; // 0: it only closes this stream and is no event of the run.
  name: string;
  data: any; // The types are in docs/reference/events.md.
}

const RETRIES = 60;
const RETRY_MILLISECONDS = 1_000;
// The server sends a comment each 15 s, so a longer silence is a lost connection.
const SILENCE_MILLISECONDS = 60_000;
const EXIT_STATUS: Record<string, number> = { completed: 0, interrupted: 2 };

/** The server has answered, and another try would get the same answer. */
class Refused extends Error {}

/** Start a run and yield its events, the last one being `final_session_state`. */
async function* followRun(server: string, question: string, headers: Record<string, string>) {
  let [runId, last, retries] = ["", 0, 0];
  const begin = () =>
    new Request(`${server}/api/chat/stream?view=live`, {
      method: "POST",
      headers: { ...headers, "Content-Type": "application/json" },
      body: JSON.stringify({ messages: [{ role: "user", content: question }], on_disconnect: "continue" }),
    });
  const goOn = () =>
    new Request(`${server}/api/runs/${runId}/events?view=live`, {
      headers: { ...headers, "Last-Event-ID": String(last) },
    });
  while (true) {
    try {
      for await (const frame of readFrames(runId ? goOn() : begin())) {
        if (!frame.number) continue; // The server stops, and the run continues later.
        [runId, last, retries] = [runId || frame.data.run_id, frame.number, 0];
        yield frame;
        if (frame.name === "final_session_state") return;
      }
    } catch (error) {
      // Without the run's id nobody can tell whether it has started: asking again might start a second.
      if (error instanceof Refused || !runId || retries === RETRIES) throw error;
    }
    if (++retries > RETRIES) throw new Error(`The events of run ${runId} cannot be read.`);
    await new Promise((resolve) => setTimeout(resolve, RETRY_MILLISECONDS));
  }
}

/** Yield the frames that one request streams. */
async function* readFrames(request: Request): AsyncGenerator<Frame> {
  const silence = new AbortController();
  const abort = () => silence.abort(new Error(`${request.url} has sent nothing for a minute.`));
  let timer = setTimeout(abort, SILENCE_MILLISECONDS);
  try {
    const response = await fetch(request, { signal: silence.signal });
    if (!response.ok) throw await failure(response);
    let waiting = "";
    for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
      clearTimeout(timer);
      timer = setTimeout(abort, SILENCE_MILLISECONDS);
      const frames = (waiting + text).split("\n\n");
      waiting = frames.pop()!;
      for (const frame of frames) if (!frame.startsWith(":")) yield parseFrame(frame);
    }
  } finally {
    clearTimeout(timer);
    silence.abort(); // Closes the connection when the caller stops reading.
  }
}

async function failure(response: Response): Promise<Error> {
  const detail = `${response.status}: ${await response.text()}`;
  return [429, 502, 503, 504].includes(response.status) ? new Error(detail) : new Refused(detail);
}

/** Read the lines `id: N` (not in closing frames), `event: NAME` and `data: JSON`. */
function parseFrame(frame: string): Frame {
  const fields = Object.fromEntries(frame.split("\n").map((line) => line.split(/: (.*)/s, 2)));
  return { number: Number(fields.id ?? 0), name: fields.event, data: JSON.parse(fields.data) };
}

async function main(question: string, server = "http://127.0.0.1:8000"): Promise<number> {
  const key = process.env.TEAM_API_KEY;
  const authors = new Map<string, string>();
  let status = "";
  for await (const { name, data } of followRun(server, question, key ? { "X-API-Key": key } : {})) {
    if (name === "start_of_agent") authors.set(data.agent_id, data.agent_name);
    if (name === "tool_call") console.log(`\n${data.tool_name} ${JSON.stringify(data.tool_input)}`);
    if (name === "message" && ["coordinator", "reporter"].includes(authors.get(data.agent_id) ?? ""))
      process.stdout.write(data.delta.content ?? "");
    if (name === "interrupt") console.log(`\nWaits (${data.kind}): ${JSON.stringify(data.payload)}`);
    if (name === "error") console.error(`\n${data.code}: ${data.message}`);
    if (name === "run_status") {
      status = data.status;
      console.log(`\nStatus: ${status}`);
      for (const gap of data.gaps ?? []) console.log(`Missing: ${gap.step}: ${gap.reason}`);
    }
  }
  return EXIT_STATUS[status] ?? 1;
}

process.exitCode = await main(process.argv[2]!, process.argv[3]).catch((error) => {
  console.error(`${error.message} ${error.cause ?? ""}`);
  return 1;
});

export {};
