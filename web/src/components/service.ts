import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { RunModel } from "../run";

/** What a person may do to a run. Each says whether it was taken; what is refused is shown. */
export interface Acts {
  askAgain(run: RunModel): Promise<boolean>;
  answer(run: RunModel, reply: unknown): Promise<boolean>;
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
}

const nothing: Service = {
  ask: (path) => Promise.reject(new Error(path)),
  has: () => false,
  attempt: () => Promise.resolve(false),
  acts: null,
};

export const ServiceContext = createContext(nothing);

/** The service behind a view of a run: views ask nothing else, so that they can stand in a file, too. */
export function useService(): Service {
  return useContext(ServiceContext);
}
