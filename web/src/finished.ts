import { Refusal } from "./api";
import type { Service } from "./components/service";

/** The maximum number of reports that are stored. */
const MOST = 30;
/** The pauses in milliseconds before the report of a run that has just ended is requested again. */
const PAUSES_MS = [200, 1_000, 3_000];

interface Known {
  text: string;
  html: Promise<string | null>;
}

const known = new Map<string, Known>();

/**
 * The report of an ended run as the HTML of its files, which the service has sanitised; null if the service has none.
 * It is requested once for each `text`, the report as it was streamed.
 */
export function finishedReport(service: Service, runId: string, text: string): Promise<string | null> {
  const found = known.get(runId);
  if (found?.text === text) return found.html;
  const path = `/api/runs/${encodeURIComponent(runId)}/report/body`;
  const made = { text, html: service.has(path) ? request(service, path, PAUSES_MS) : Promise.resolve(null) };
  known.set(runId, made);
  // What failed is requested again the next time.
  void made.html.then((html) => html === null && known.get(runId) === made && known.delete(runId));
  if (known.size > MOST) known.delete(known.keys().next().value!);
  return made.html;
}

async function request(service: Service, path: string, [pause, ...more]: number[]): Promise<string | null> {
  try {
    return await (await service.ask(path, { headers: { accept: "text/html" } })).text();
  } catch (problem) {
    // Its last event may arrive before its status is stored.
    if (!(problem instanceof Refusal && problem.status === 409) || pause === undefined) return null;
    await new Promise((resolve) => setTimeout(resolve, pause));
    return request(service, path, more);
  }
}
