/** The parts of a turn of a member, in the order in which they happened. */

import type { ArtifactLink, BrowserStep, Decision, Interrupt } from "./events";

/** A text of a member in one model call. */
export interface TextPart {
  kind: "text";
  content: string;
  reasoning: string;
  version: number;
  /** Whether it broke off and was replaced by another message. */
  isReplaced?: boolean;
  /** Whether the member answered again, because of a message of the user or a change of the plan. */
  isOutdated?: boolean;
}

/** A piece of the output of a running call. */
export interface OutputPiece {
  stream: string;
  text: string;
}

/** A tool call; `result` is null until it returns. Times are Unix seconds, null if unknown. */
export interface Call {
  kind: "call";
  id: string;
  tool: string;
  input: Record<string, unknown>;
  printed: OutputPiece[];
  result: string | null;
  begun: number | null;
  ended: number | null;
  /** For a call of the browser: the newest event of each step. */
  steps: BrowserStep[];
  /** The files that its result names, after their events. */
  files: ArtifactLink[];
  version: number;
}

/** The lead's decision after the step of a turn has failed. */
export interface DecisionPart {
  kind: "decision";
  decision: Decision;
}

/** The outcome of the call that the user was asked about; null if it is open or there is none. */
export type CallOutcome = "made" | "edited" | "left" | null;

/** What the run waited for. */
export interface PausePart {
  kind: "pause";
  asked: Interrupt;
  outcome: CallOutcome;
  version: number;
}

/** One turn of a member. `version` changes with its content. */
export interface Turn {
  id: string;
  agent: string;
  /** Its step; null for members without a step, such as the planner. */
  step: { id: number; title: string } | null;
  isOpen: boolean;
  parts: (TextPart | Call | PausePart | DecisionPart)[];
  tokens: number;
  seconds: number;
  begun: number | null;
  ended: number | null;
  /** The time of its newest event; null without times. */
  heard: number | null;
  /** While the model's endpoint does not answer: the number of the try that follows, and for how many seconds more. */
  outage: { attempt: number; left: number } | null;
  version: number;
}
