import { signal } from "@preact/signals";

/** What the page shows: a conversation (null: a new one), and the run of it whose report is read. */
export interface Address {
  thread: string | null;
  reading: string | null;
}

/** `#THREAD`, or `#THREAD/read/RUN`. What is no address is that of a new conversation. */
export function addressOf(hash: string): Address {
  try {
    const [thread = "", verb, run = ""] = hash.replace(/^#/, "").split("/").map(decodeURIComponent);
    return { thread: thread || null, reading: verb === "read" && run ? run : null };
  } catch {
    return { thread: null, reading: null };
  }
}

/** The run whose report is read, by its id; null while none is. */
export const reading = signal<string | null>(null);

const here = () => addressOf(location.hash);
const hashOf = (...parts: string[]) => `#${parts.map(encodeURIComponent).join("/")}`;

/** Agree with the address, which the person may have changed by a link or by going back. */
export function lookAtAddress(): Address {
  const now = here();
  reading.value = now.reading;
  return now;
}

export function startReading(runId: string): void {
  history.pushState({ wasOpened: true }, "", hashOf(here().thread ?? "", "read", runId));
  lookAtAddress();
}

/** Go back to the conversation, by the way that the person came where there is one. */
export function stopReading(): void {
  if ((history.state as { wasOpened?: boolean } | null)?.wasOpened) return history.back();
  history.replaceState(null, "", hashOf(here().thread ?? ""));
  lookAtAddress();
}
