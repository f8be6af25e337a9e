/** Every event of a run, as `docs/wire.md` has it. What is not known here is passed over. */

import type { ArtifactCreated, BrowserStateChanged, BrowserStepChanged, EventData, MarkView, PlanStepView, RunInterrupted, RunGap, RunStatusChanged, TabView } from "./events.generated";

export type { ChatMessage } from "./events.generated";

export type Step = PlanStepView;
export type Interrupt = Omit<RunInterrupted, "type">;
export type ArtifactLink = Omit<ArtifactCreated, "type">;
export type Gap = RunGap;
export type Mark = MarkView;
export type Tab = TabView;
export type BrowserAction = NonNullable<BrowserStepChanged["action"]>;
export type BrowserElement = NonNullable<BrowserStepChanged["element"]>;

/** Every version has sent these of a step. */
type StepContent = Required<Pick<BrowserStepChanged, "thought" | "action" | "observation" | "seconds">>;
export type BrowserStep = Omit<BrowserStepChanged, "type" | "tool_call_id" | "state"> & StepContent & { state: string };

export type Told =
  | Exclude<EventData, BrowserStepChanged | BrowserStateChanged | RunStatusChanged>
  | ({ type: "browser_step"; tool_call_id: string } & BrowserStep)
  | (BrowserStateChanged & { screenshot: string | null })
  | { type: "run_status"; status: string; gaps?: RunGap[] };

/** An event with its number in the run; one that closes the stream of a stopping server has none. */
export type RunEvent = Told & {
  id: number | null;
  /** When it happened, in Unix seconds; absent where an earlier version stored it. */
  at?: number;
};
