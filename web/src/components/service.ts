import { type ReadonlySignal, signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { RunModel } from "../run";

/** What a person may do to a run. Each says whether it was taken; what is refused is shown. */
export interface Acts {
  askAgain(run: RunModel): Promise<boolean>;
  retry(run: RunModel): Promise<boolean>;
  answer(run: RunModel, reply: unknown): Promise<boolean>;
  cancel(run: RunModel): Promise<boolean>;
  changePlan(run: RunModel, change: PlanChange): Promise<boolean>;
  /** Save a run as a file that plays it. */
  share(run: RunModel): Promise<boolean>;
}

/** What is to be changed in a plan under way, as `POST /api/runs/{run_id}/plan` takes it. */
export interface PlanChange {
  action: "skip" | "redo" | "edit" | "add" | "move";
  step_id?: number;
  /** The step behind which one that is added or moved goes, 0 for the beginning. */
  after?: number;
  title?: string;
  description?: string;
  agent_name?: string;
}

/** The time of the run that is shown: the service's, or that of the place where a film of it stands. */
export interface Clock {
  /** Unix seconds. */
  now: ReadonlySignal<number>;
  /** Let `now` go on until the returned function is called. */
  watch(): () => void;
}

/** Where the views of a run get what its events only name: from the server, or from the file they are in. */
export interface Service {
  /** Read `path`, an address of the service. Throws when it cannot be had. */
  ask(path: string, options?: RequestInit): Promise<Response>;
  /** Whether `path` can be asked for at all. */
  has(path: string): boolean;
  /** Do what the person asked for; says whether it went well, and shows why not. */
  attempt(work: () => Promise<void>): Promise<boolean>;
  /** Null where a run is only looked at. */
  acts: Acts | null;
  clock: Clock;
}

const nothing: Service = {
  ask: (path) => Promise.reject(new Error(path)),
  has: () => false,
  attempt: () => Promise.resolve(false),
  acts: null,
  clock: { now: signal(0), watch: () => () => undefined },
};

export const ServiceContext = createContext(nothing);

/** The service behind a view of a run: views ask nothing else, so that they can stand in a file, too. */
export function useService(): Service {
  return useContext(ServiceContext);
}
