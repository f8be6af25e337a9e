import { signal } from "@preact/signals";

/** A member of the team. */
export interface Member {
  name: string;
  desc: string;
  is_optional: boolean;
}

export const members = signal<Member[]>([]);
