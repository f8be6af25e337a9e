import { Refusal, read } from "./api";

interface Ready {
  ready: boolean;
  why: string;
}

/** A part of the service that is unavailable, and the remedy. */
export interface Absence {
  part: string;
  /** Whether it is a server of tools, named by the settings. */
  isTools: boolean;
  why: string;
}

/** The unavailable parts of the service, the model first. */
export async function absences(): Promise<Absence[]> {
  const { ready: _, mcp = {}, ...parts } = await read<Record<string, Ready>>("/readyz").catch(unready);
  const absent = [...absentIn(parts, false), ...absentIn(mcp as unknown as Record<string, Ready>, true)];
  return absent.sort((one, other) => Number(other.part === "model") - Number(one.part === "model"));
}

function absentIn(parts: Record<string, Ready>, isTools: boolean): Absence[] {
  const found = Object.entries(parts).filter(([, one]) => !one.ready);
  return found.map(([part, one]) => ({ part, isTools, why: one.why }));
}

function unready(error: unknown): Record<string, Ready> {
  // A service that is not ready reports the reason with a 503.
  if (error instanceof Refusal && error.status === 503 && error.body) return error.body as Record<string, Ready>;
  throw error;
}
