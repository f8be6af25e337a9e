/** All events of a run, as in `docs/wire.md`. Unknown ones are ignored. */

import type { ArtifactCreated, BrowserStateChanged, BrowserStepChanged, EventData, GapsReviewed, LeadDecided, MarkView, PlanStepView, RunInterrupted, RunGap, RunStatusChanged, StepInterrupted, TabView } from "./events.generated";

export type { ChatMessage } from "./events.generated";

export type Step = PlanStepView;
export type Interrupt = Omit<RunInterrupted, "type">;
/** What a step asks while others go on; `agent_id` is its turn. */
export type StepQuestion = Omit<StepInterrupted, "type"> & { agent_id?: string };
export type ArtifactLink = Omit<ArtifactCreated, "type">;
export type Gap = RunGap;
export type GapReview = Omit<GapsReviewed, "type">;
export type Decision = Omit<LeadDecided, "type">;
export type Mark = MarkView;
export type Tab = TabView;
export type BrowserAction = NonNullable<BrowserStepChanged["action"]>;
export type BrowserElement = NonNullable<BrowserStepChanged["element"]>;

/** Fields of a step that all versions send. */
type StepContent = Required<Pick<BrowserStepChanged, "thought" | "action" | "observation" | "seconds">>;
export type BrowserStep = Omit<BrowserStepChanged, "type" | "tool_call_id" | "state"> & StepContent & { state: string };

export type EventFields =
  | Exclude<EventData, BrowserStepChanged | BrowserStateChanged | RunStatusChanged>
  | ({ type: "browser_step"; tool_call_id: string } & BrowserStep)
  | (BrowserStateChanged & { screenshot: string | null })
  | { type: "run_status"; status: string; gaps?: RunGap[] };

/** An event with its number in the run; one that closes the stream of a stopping server has none. */
export type RunEvent = EventFields & {
  id: number | null;
  /** Its time in Unix seconds; absent if an earlier version stored it. */
  at?: number;
  /** The turn that it belongs to, and the step of the plan in that turn; absent for what is the run's. */
  agent_id?: string;
  step_id?: number;
};
