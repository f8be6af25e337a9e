import { signal } from "@preact/signals";

/** The state in the URL: a conversation (null: a new one), and the run whose report is open. */
export interface Address {
  thread: string | null;
  reading: string | null;
}

/** `#THREAD`, or `#THREAD/read/RUN`. An invalid one means a new conversation. */
export function addressOf(hash: string): Address {
  try {
    const [thread = "", verb, run = ""] = hash.replace(/^#/, "").split("/").map(decodeURIComponent);
    return { thread: thread || null, reading: verb === "read" && run ? run : null };
  } catch {
    return { thread: null, reading: null };
  }
}

/** The id of the run whose report is open; null for none. */
export const reading = signal<string | null>(null);

const here = () => addressOf(location.hash);
const hashOf = (...parts: string[]) => `#${parts.map(encodeURIComponent).join("/")}`;

/** Update the state from the URL, which a link or the back button may have changed. */
export function lookAtAddress(): Address {
  const now = here();
  reading.value = now.reading;
  return now;
}

export function startReading(runId: string): void {
  history.pushState({ wasOpened: true }, "", hashOf(here().thread ?? "", "read", runId));
  lookAtAddress();
}

/** Return to the conversation, by the history if possible. */
export function stopReading(): void {
  if ((history.state as { wasOpened?: boolean } | null)?.wasOpened) return history.back();
  history.replaceState(null, "", hashOf(here().thread ?? ""));
  lookAtAddress();
}
