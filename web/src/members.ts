import { signal } from "@preact/signals";
import { texts } from "./texts";

/** A member of the team. */
export interface Member {
  name: string;
  desc: string;
  is_optional: boolean;
}

export const members = signal<Member[]>([]);

/** What an agent is for, in a few words; "" for a role of the settings. */
export function dutyOf(agent: string): string {
  return texts.duties[agent] ?? "";
}
