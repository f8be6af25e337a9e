import { Refusal, read } from "./api";

interface Ready {
  ready: boolean;
  why: string;
}

/** A part of the service that is not there, and what can be done about it. */
export interface Absence {
  part: string;
  why: string;
}

/** What the service does without, the model first: without that one nothing is answered. */
export async function absences(): Promise<Absence[]> {
  const { ready: _, mcp = {}, ...parts } = await read<Record<string, Ready>>("/readyz").catch(unready);
  const found = Object.entries({ ...parts, ...(mcp as unknown as Record<string, Ready>) });
  const absent = found.filter(([, one]) => !one.ready).map(([part, one]) => ({ part, why: one.why }));
  return absent.sort((one, other) => Number(other.part === "model") - Number(one.part === "model"));
}

function unready(error: unknown): Record<string, Ready> {
  // A service that is not ready says why in a 503.
  if (error instanceof Refusal && error.status === 503 && error.told) return error.told as Record<string, Ready>;
  throw error;
}
