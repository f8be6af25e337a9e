/** Every event of a run, as `docs/wire.md` has it. What is not known here is passed over. */

export interface Step {
  id: number;
  agent_name: string;
  title: string;
  description: string;
  status: string;
  reason?: string;
}

export interface Interrupt {
  interrupt_id: string;
  kind: "plan_review" | "tool_approval" | "question";
  payload: Record<string, unknown>;
  options: string[];
}

export interface ArtifactLink {
  artifact_id: string;
  name: string;
  media_type: string;
  size: number;
  url: string;
}

export interface ChatMessage {
  role: string;
  content: string | { type: string; text?: string }[];
}

export interface BrowserAction {
  name: string;
  parameters: Record<string, unknown>;
}

/** An element of a page, in the page's words. */
export interface BrowserElement {
  role: string;
  name: string;
}

/** Where something is in a window: fractions of its width and height. */
export interface Mark {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Tab {
  tab_id: number;
  url: string;
  title: string;
  is_current: boolean;
}

/** What is optional was not told by earlier versions. */
export interface BrowserStep {
  number: number;
  state: string;
  phase?: string;
  thought: string;
  action: BrowserAction | null;
  observation: string | null;
  success?: boolean | null;
  seconds: number;
  mark?: Mark | null;
  element?: BrowserElement | null;
  screenshot?: string | null;
}

export type Told =
  | { type: "run"; run_id: string; thread_id: string }
  | { type: "start_of_workflow"; workflow_id: string; input: ChatMessage[] }
  | { type: "start_of_agent" | "end_of_agent"; agent_name: string; agent_id: string }
  | { type: "start_of_llm" | "end_of_llm"; agent_name: string }
  | { type: "message"; message_id: string; delta: { content?: string; reasoning_content?: string } }
  | { type: "tool_call"; tool_call_id: string; tool_name: string; tool_input: Record<string, unknown> }
  | { type: "tool_output"; tool_call_id: string; tool_name: string; stream: string; text: string }
  | { type: "tool_call_result"; tool_call_id: string; tool_name: string; tool_result: string }
  | { type: "plan"; title: string; steps: Step[] }
  | ({ type: "artifact" } & ArtifactLink)
  | { type: "usage"; agent_name: string; model: string; input_tokens: number; output_tokens: number; seconds: number }
  | ({ type: "interrupt" } & Interrupt)
  | { type: "error"; code: string; message: string; agent_name: string | null; retryable: boolean }
  | { type: "run_status"; status: string }
  | { type: "end_of_workflow" | "final_session_state"; messages: ChatMessage[] }
  | { type: "browser_state"; url: string; title: string; tabs?: Tab[]; screenshot: string | null }
  | ({ type: "browser_step"; tool_call_id: string } & BrowserStep);

/** An event with its number in the run; a farewell of a stopping server has none. */
export type RunEvent = Told & {
  id: number | null;
  /** When it happened, in Unix seconds; absent where an earlier version stored it. */
  at?: number;
};
