import { signal } from "@preact/signals";
import { readStored, writeStored } from "./storage";

const nameOf = (thread: string | null) => `maniple.review.${thread ?? ""}`;
const version = signal(0);

/** Whether plans of a conversation wait for the user's review; null is a new conversation. */
export function isReviewing(thread: string | null): boolean {
  void version.value;
  return readStored(nameOf(thread)) !== "";
}

/** Let the plans of a conversation wait for a review, or not any more; new conversations begin with the last choice. */
export function setReviewing(thread: string | null, isChosen: boolean): void {
  for (const one of [thread, null]) writeStored(nameOf(one), isChosen ? "yes" : "");
  version.value += 1;
}

/** Let a conversation begin with the choice of another one; new conversations keep theirs. */
export function moveReviewing(from: string | null, to: string): void {
  writeStored(nameOf(to), isReviewing(from) ? "yes" : "");
  version.value += 1;
}
