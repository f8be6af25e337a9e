import { signal } from "@preact/signals";

/** Somebody of the team. */
export interface Member {
  name: string;
  desc: string;
  is_optional: boolean;
}

export const members = signal<Member[]>([]);
