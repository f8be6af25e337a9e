import { signal } from "@preact/signals";
import { readStored, writeStored } from "./storage";

const nameOf = (thread: string | null) => `maniple.review.${thread ?? ""}`;
const version = signal(0);

/** Whether plans of a conversation wait for the user's review; null is a new conversation. */
export function isReviewing(thread: string | null): boolean {
  void version.value;
  return readStored(nameOf(thread)) !== "";
}

/** Let the plans of a conversation wait for a review, or not any more. The choice ends with its conversation. */
export function setReviewing(thread: string | null, isChosen: boolean): void {
  writeStored(nameOf(thread), isChosen ? "yes" : "");
  version.value += 1;
}

/** Let a conversation begin with the choice of another one, or take that of the new conversation that became it. */
export function moveReviewing(from: string | null, to: string): void {
  setReviewing(to, isReviewing(from));
  if (from === null) setReviewing(null, false);
}
