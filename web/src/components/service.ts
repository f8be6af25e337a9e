import { type ReadonlySignal, signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Interrupt } from "../events";
import type { RunModel } from "../run";

/** The user's actions on a run. Each returns whether it was accepted; refusals are shown. */
export interface Acts {
  askAgain(run: RunModel): Promise<boolean>;
  /** Ask the question of a run again on a branch, with another text unless it is empty, as the options are chosen now. */
  branch(run: RunModel, text: string): Promise<boolean>;
  retry(run: RunModel): Promise<boolean>;
  answer(run: RunModel, to: Interrupt, reply: unknown): Promise<boolean>;
  /** Let the field below take an answer in words to a question of the run, which begins with `begin`. */
  answerInWords(run: RunModel, to: Interrupt, begin: string): void;
  cancel(run: RunModel): Promise<boolean>;
  /** Whether the button below the question cancels this run, which then has none of its own. */
  isForemost(run: RunModel): boolean;
  /** Whether the question of the run with this id stands in the conversation. */
  isAskedHere(runId: string): boolean;
  changePlan(run: RunModel, change: PlanChange): Promise<boolean>;
  /** Save a run as a file that plays it. */
  share(run: RunModel): Promise<boolean>;
}

/** A change of a running plan, as in `POST /api/runs/{run_id}/plan`. */
export interface PlanChange {
  action: "skip" | "redo" | "edit" | "add" | "move";
  step_id?: number;
  /** The step after which an added or moved step is inserted; 0 for the beginning. */
  after?: number;
  title?: string;
  description?: string;
  agent_name?: string;
}

/** The present time of the run: the service's clock, or the position of a replay. */
export interface Clock {
  /** Unix seconds. */
  now: ReadonlySignal<number>;
  /** Keep `now` updated until the returned function is called. */
  watch(): () => void;
}

/** The source of data that events only name: the server, or a replay file. */
export interface Service {
  /** Fetch `path` from the service. Throws if that fails. */
  ask(path: string, options?: RequestInit): Promise<Response>;
  /** Whether `path` is available. */
  has(path: string): boolean;
  /** Run an action of the user; returns whether it succeeded, and shows errors. */
  attempt(work: () => Promise<void>): Promise<boolean>;
  /** Null in a replay. */
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

/** The service that views of a run use, so that they also work in a replay file. */
export function useService(): Service {
  return useContext(ServiceContext);
}
