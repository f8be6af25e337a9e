import { signal } from "@preact/signals";

/** One way in which a conversation goes on: its thread, and the run that asks the question there. */
export interface Branch {
  thread_id: string;
  run_id: string;
}

/** A question that was asked in several ways, the open one as `run_id`. */
export interface BranchPoint {
  run_id: string;
  branches: Branch[];
  note: string;
}

/** The conversation that the open thread belongs to; null while that is unknown. */
export const conversationId = signal<string | null>(null);
/** The questions of the open thread that were asked in several ways, by run. */
export const branchPoints = signal<ReadonlyMap<string, BranchPoint>>(new Map());

/** Take the branches from a thread's detail; null for none. */
export function takeBranches(detail: { conversation_id: string; branch_points: BranchPoint[] } | null): void {
  conversationId.value = detail?.conversation_id ?? null;
  branchPoints.value = new Map(detail?.branch_points.map((one) => [one.run_id, one]));
}

/** Where the arrows at a question lead: the branches beside the open one, its position from 1, and their number. */
export function besides({ run_id, branches }: BranchPoint): { at: number; count: number; previous: Branch | undefined; next: Branch | undefined } {
  const at = branches.findIndex((one) => one.run_id === run_id);
  return { at: at + 1, count: branches.length, previous: branches[at - 1], next: branches[at + 1] };
}
