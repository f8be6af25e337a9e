import { Refusal, read } from "./api";

interface Ready {
  ready: boolean;
  why: string;
}

/** A part of the service that is unavailable, and the remedy. */
export interface Absence {
  part: string;
  why: string;
}

/** The unavailable parts of the service, the model first. */
export async function absences(): Promise<Absence[]> {
  const { ready: _, mcp = {}, ...parts } = await read<Record<string, Ready>>("/readyz").catch(unready);
  const found = Object.entries({ ...parts, ...(mcp as unknown as Record<string, Ready>) });
  const absent = found.filter(([, one]) => !one.ready).map(([part, one]) => ({ part, why: one.why }));
  return absent.sort((one, other) => Number(other.part === "model") - Number(one.part === "model"));
}

function unready(error: unknown): Record<string, Ready> {
  // A service that is not ready reports the reason with a 503.
  if (error instanceof Refusal && error.status === 503 && error.body) return error.body as Record<string, Ready>;
  throw error;
}
