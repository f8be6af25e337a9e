import { signal } from "@preact/signals";
import { keep, kept } from "./kept";

const KEPT_AS = "maniple.key";

/** The API key of this tab; "" where none is needed, or none was given. */
export const apiKey = signal(kept(KEPT_AS));
/** Why the service wants a key, in its own words; null while it does not. */
export const keyWanted = signal<string | null>(null);

/** A refusal of the service; its message says what to do about it. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** All of the answer. */
    readonly told: unknown,
  ) {
    super(message);
  }
}

export function useKey(key: string): void {
  keep(KEPT_AS, key);
  apiKey.value = key;
  keyWanted.value = null;
}

/** Ask the service for `path`. Throws `Refusal`, or TypeError when it cannot be reached. */
export async function ask(path: string, options: RequestInit = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  const key = apiKey.value;
  if (key) headers.set("authorization", `Bearer ${key}`);
  const response = await fetch(path, { ...options, headers });
  if (response.ok) return response;
  const refusal = await refusalOf(response);
  // An answer to the key before this one says nothing of this one.
  if (response.status === 401 && key === apiKey.value) keyWanted.value = refusal.message;
  throw refusal;
}

export async function read<T>(path: string): Promise<T> {
  return (await ask(path)).json() as Promise<T>;
}

export async function send<T>(method: string, path: string, body?: unknown): Promise<T> {
  const json = { body: JSON.stringify(body ?? {}), headers: { "content-type": "application/json" } };
  const response = await ask(path, { method, ...(method === "DELETE" ? {} : json) });
  return (response.status === 204 ? null : await response.json()) as T;
}

async function refusalOf(response: Response): Promise<Refusal> {
  const told: unknown = await response.json().catch(() => null);
  const { detail, code } = (told ?? {}) as { detail?: unknown; code?: string };
  const words = typeof detail === "string" ? detail : JSON.stringify(detail ?? response.statusText);
  return new Refusal(response.status, code ?? "", words, told);
}
