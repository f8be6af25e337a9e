import { signal } from "@preact/signals";
import { readStored, writeStored } from "./storage";
import { texts } from "./texts";

const STORAGE_KEY = "maniple.key";

/** The API key; "" if none is needed or given. */
export const apiKey = signal(readStored(STORAGE_KEY));
/** The service's message that asks for a key; null if it needs none. */
export const keyWanted = signal<string | null>(null);

/** An error response of the service; its message says what to do. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** The response body. */
    readonly body: unknown,
  ) {
    super(message);
  }
}

/** Between the tabs of this browser: a key that was entered, "" after a log-out, and null as the question for it. */
const otherTabs = new BroadcastChannel(STORAGE_KEY);

/** Use a key in all tabs of this browser; "" logs them out. */
export function useKey(key: string): void {
  take(key);
  otherTabs.postMessage(key);
}

function take(key: string): void {
  writeStored(STORAGE_KEY, key);
  apiKey.value = key;
  keyWanted.value = null;
}

/** Use the key of the other tabs, now and when one of them gets another; `onKey` is called then. */
export function shareKey(onKey: () => void): void {
  otherTabs.addEventListener("message", ({ data }: MessageEvent<string | null>) => {
    if (data === null) {
      if (apiKey.value) otherTabs.postMessage(apiKey.value);
    } else if (data !== apiKey.value) {
      take(data);
      onKey();
    }
  });
  if (!apiKey.value) otherTabs.postMessage(null);
}

/** Request `path` from the service. Throws `Refusal`, or TypeError if it is unreachable. */
export async function ask(path: string, options: RequestInit = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  const key = apiKey.value;
  if (key) headers.set("authorization", `Bearer ${key}`);
  const response = await fetch(path, { ...options, headers });
  if (response.ok) return response;
  const refusal = await refusalOf(response);
  // A response to an earlier key says nothing about the present one.
  if (response.status === 401 && key === apiKey.value) keyWanted.value = refusal.code === "key_needed" ? texts.keyNeeded : refusal.message;
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
  const body: unknown = await response.json().catch(() => null);
  const { detail, code } = (body ?? {}) as { detail?: unknown; code?: string };
  const text = typeof detail === "string" ? detail : JSON.stringify(detail ?? response.statusText);
  return new Refusal(response.status, code ?? "", text, body);
}
