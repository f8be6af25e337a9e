/** Generated from `src/maniple/events` by `make types`. Do not edit.
 *
 * A field with a default in Python is optional here: events of earlier versions may lack it.
 */

/** An agent's turn has ended. */
export interface AgentEnded {
  type: "end_of_agent";
  agent_name: string;
  agent_id: string;
}

/** An agent's turn begins: a worker's when the results that its step needs are there.
 *
 * `agent_id` is `{run_id}_{agent}_{step}`, with the suffix `_2` when a step has that agent twice. */
export interface AgentStarted {
  type: "start_of_agent";
  agent_name: string;
  agent_id: string;
}

/** A page that the run read, or a file that it wrote, can be downloaded from `url`; `size` is in bytes.
 *
 * It comes shortly after the `tool_call_result`, and for later changes before `run_status`. `source` is the
 * number of the source whose text a page is. A file has no such key. */
export interface ArtifactCreated {
  type: "artifact";
  artifact_id: string;
  name: string;
  media_type: string;
  size: number;
  url: string;
  source?: number;
}

/** The page that the browser shows. `screenshot` is the address of an artifact, null without a picture. */
export interface BrowserStateChanged {
  type: "browser_state";
  url: string;
  title: string;
  tabs?: TabView[];
  screenshot?: string | null;
}

/** A step of a running `browser` call, each time its state changes.
 *
 * The newest event of a `number` is the whole step. `started` is Unix time, `seconds` the duration so far.
 * `element` is what the action is applied to, as the page describes it; `mark` is its place in the window.
 * `screenshot` is the address of the picture on which the action was decided. */
export interface BrowserStepChanged {
  type: "browser_step";
  tool_call_id: string;
  number: number;
  state: "idle" | "thinking" | "acting" | "observing" | "completed" | "failed" | "cancelled";
  phase?: string;
  thought?: string;
  action?: { name: string; parameters: Record<string, unknown> } | null;
  observation?: string | null;
  success?: boolean | null;
  started?: number;
  seconds?: number;
  mark?: MarkView | null;
  element?: { role: string; name: string } | null;
  screenshot?: string | null;
}

/** One message of the conversation as clients see it. */
export interface ChatMessage {
  role: string;
  content: string | { type: string; text?: string }[];
}

/** A claim of the report, without citations and markup.
 *
 * `row` and `column` are the heads of a claim that is a cell of a table. `passage` shows the verdict.
 * `reasons` are the parts of `reason` for clients in other languages; events of earlier versions have none.
 * `mark` is the number of its mark among all `[unverified]` in the answer, from 1; null without one. */
export interface ClaimView {
  text: string;
  row: string;
  column: string;
  verdict: "supported" | "contradicted" | "absent" | "open";
  reason: string;
  citations: number[];
  passage: PassageView | null;
  mark: number | null;
  reasons?: ReasonView[];
}

/** The check of a report has ended. The newest one of the turn that wrote the answer counts.
 *
 * - `score` is the line with which the report ends, as Markdown; "" if nothing in it could be checked.
 * - `supported`: a source, or a calculation, says so; `contradicted`: a source says something else, or the
 *   claim's own arithmetic is wrong; `absent`: a figure, date or quotation stands nowhere; `open`: no rule
 *   decides it; `not_checked`: claims behind the limit; `exempt`: nothing in them has to be in a source.
 * - `citations` are the citations of all claims; `supporting_citations` those that are known to say what
 *   their claim says.
 * - `claims` are at most 500, those with a mark first; `unlisted` is the number of the others. Exempt ones
 *   are never listed. `marked_citations` are at most 500, too.
 * - `unsearched` are the numbers of sources that no claim cites and that were too long to be searched. */
export interface ClaimsChecked {
  type: "claims";
  score: string;
  supported: number;
  contradicted: number;
  absent: number;
  open: number;
  not_checked: number;
  exempt: number;
  citations: number;
  supporting_citations: number;
  claims: ClaimView[];
  unlisted: number;
  marked_citations: MarkedCitation[];
  unsearched: number[];
}

/** A model of the run does not take the effort that the run asks for, and works as it does by itself.
 *
 * `model` is its name. Each model is reported once, and again after the run has waited or was recovered. */
export interface EffortNotUsed {
  type: "effort_not_used";
  effort: "low" | "medium" | "high";
  model: string;
}

/** The error that ends a run or its stream. */
export interface ErrorOccurred {
  type: "error";
  code: string;
  message: string;
  agent_name: string | null;
  retryable: boolean;
}

/** Before the report of a deep run: what is still open, and which steps were added to the plan for it.
 *
 * `round` counts the rounds of added steps from 1; it is 0 if none was added yet. `steps` are the titles of
 * the added steps, which the next `plan` has. `notice` says why no step was added, or is null. */
export interface GapsReviewed {
  type: "gap_review";
  round: number;
  questions: ResearchGapView[];
  steps: string[];
  refused: RefusedStepView[];
  notice?: string | null;
}

/** The lead has decided how the run continues after step `step_id`, titled `title`, has failed.
 *
 * `agent_name` is the member that takes over after `reassign`; otherwise it is null. `hint` is the lead's
 * advice for the next try. */
export interface LeadDecided {
  type: "lead_decision";
  step_id: number;
  title: string;
  decision: "retry" | "reassign" | "continue_without" | "replan" | "finish";
  agent_name?: string | null;
  hint?: string | null;
}

/** A rectangle in a window, as fractions of the window's width and height. */
export interface MarkView {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** A citation that could not be verified: an address, a source number or a quotation, and its mark. */
export interface MarkedCitation {
  kind: "url" | "number" | "quotation";
  text: string;
  reason: string;
  mark: number;
  reasons?: ReasonView[];
}

/** A piece of what a model writes. Its size depends on the network; the pieces together are the text. */
export interface MessageChunk {
  type: "message";
  message_id: string;
  delta: MessageDelta;
}

/** A piece of a message: text or reasoning, never both. */
export interface MessageDelta {
  content?: string;
  reasoning_content?: string;
}

/** The message broke off, and another attempt says something else: that message takes its place.
 *
 * Only the view `live` has it. */
export interface MessageReplaced {
  type: "message_replaced";
  message_id: string;
  replaced_by: string;
}

/** A model call has ended. */
export interface ModelEnded {
  type: "end_of_llm";
  agent_name: string;
}

/** A model call begins. */
export interface ModelStarted {
  type: "start_of_llm";
  agent_name: string;
}

/** The endpoint of the model does not answer, and the request is sent again.
 *
 * `attempt` is the number of that try, from 2; it begins after `seconds`. Tries go on for `left_seconds`. */
export interface ModelUnreachable {
  type: "model_unreachable";
  attempt: number;
  seconds: number;
  left_seconds: number;
}

/** A sentence or table row of what was read.
 *
 * `source` is the number of the source; 0 is what the user said or a program of the run printed. `start` is
 * the offset in characters in the text with the index `text_index` among the source's texts. */
export interface PassageView {
  source: number;
  text: string;
  text_index: number;
  start: number;
}

/** The whole plan, at each change.
 *
 * A `draft` has the steps that are written so far. It is no plan yet: the plan, or the next draft, replaces
 * it. Otherwise the wire has no such key. */
export interface PlanChanged {
  type: "plan";
  title: string;
  steps: PlanStepView[];
  draft?: boolean;
}

/** One step of the plan and its status.
 *
 * `reason` is one line: why the step failed, is blocked or was skipped, or what its partial result lacks.
 * `details` is the error itself, where the reason is a sentence about it. `repeats` is true for a report
 * that only repeats the result of another step, so that no member works at it. `needs` are the ids of the
 * steps whose results it gets, if not those of all before it. Otherwise the wire has no such keys. */
export interface PlanStepView {
  id: number;
  agent_name: string;
  title: string;
  description: string;
  status: string;
  reason?: string;
  details?: string;
  repeats?: boolean;
  needs?: number[];
}

/** Why a claim or citation got its verdict: a code, and the values of the sentence that it stands for. */
export interface ReasonView {
  code: "unknown_source" | "many_quotations" | "unread_address" | "unknown_address" | "words_nowhere" | "words_not_in_cited" | "stands_in_source" | "stands_in_result" | "noted" | "is_column_sum" | "equation_holds" | "calculated" | "nothing_to_check" | "given" | "team_said" | "proposal" | "other_value" | "other_cell_value" | "other_result" | "other_subject" | "other_row" | "other_column" | "other_cell" | "result_in_other_row" | "instead" | "points" | "other_source" | "words_in_other_source" | "other_speaker" | "lost_negation" | "named_source" | "opposite_change" | "exchanged" | "wrong_column_sum" | "equation_fails" | "not_equal" | "wrong_change" | "wrong_difference" | "wrong_share" | "wrong_side" | "not_the_change" | "is_ratio" | "is_points" | "is_other_share" | "is_swapped" | "result_for_other" | "nothing_read" | "in_no_source" | "not_in_cited" | "marked_before" | "no_rule" | "about_conversation" | "not_stored" | "no_known_source" | "perhaps_calculated" | "unlike_units" | "used" | "may_be_calculated" | "many_figures" | "not_found" | "may_follow" | "not_in_conversation" | "only_team_said" | "given_before" | "conversion" | "bare_digits" | "other_unit" | "other_direction" | "other_negation" | "unnamed" | "other_order" | "judged_exempt" | "judged_supported" | "judged_contradicted" | "judged_given" | "result_supports" | "result_contradicts" | "judged_not_in_cited" | "judged_in_no_source" | "undecided" | "not_judged" | "no_verdict" | "several_verdicts" | "unknown_verdict" | "not_exempt" | "unknown_passage" | "unknown_span" | "unrelated_span" | "not_cited" | "not_given" | "no_json" | "no_answer" | "no_request_left" | "no_second_request" | "too_long" | "many_claims" | "time_over" | "too_slow" | "budget_used" | "model_failed";
  values: Record<string, string>;
}

/** A step that the lead wanted and that was not added to the plan, with the reason. */
export interface RefusedStepView {
  title: string;
  reason: string;
}

/** A question that the results leave open, and why it is needed. `open`: no step can answer it. */
export interface ResearchGapView {
  question: string;
  why: string;
  open: boolean;
}

/** The run works again, after it waited `seconds`. */
export interface RunContinued {
  type: "run_continued";
  waiting_for: "model" | "store";
  seconds: number;
}

/** A step whose result the answer lacks: its title, and in one line why it was not done.
 *
 * `rejected` is true where the user did not approve it, so that no retry is offered. Otherwise the wire has
 * no such key. */
export interface RunGap {
  step: string;
  reason: string;
  rejected?: boolean;
}

/** The run waits for an answer of the user. */
export interface RunInterrupted {
  type: "interrupt";
  interrupt_id: string;
  kind: "plan_review" | "tool_approval" | "question";
  payload: Record<string, unknown>;
  options: string[];
}

/** The first event of each segment of a run. */
export interface RunStarted {
  type: "run";
  run_id: string;
  thread_id: string;
}

/** The status with which a segment ends.
 *
 * `gaps` are the steps whose results the answer lacks. Without any, the wire has no such key. A failed run
 * that has them has an answer, which code has put together. Those of a cancelled retry are still to be done. */
export interface RunStatusChanged {
  type: "run_status";
  status: "completed" | "failed" | "cancelled" | "interrupted" | "budget_exhausted";
  gaps?: RunGap[];
}

/** Nothing of the run is at work, because its model or the store is away: the run is `queued` until then.
 *
 * `reason` says in one sentence what failed. The run waits from `since` until `until` (Unix seconds) at most
 * and goes on by itself; then it fails. */
export interface RunWaiting {
  type: "run_waiting";
  waiting_for: "model" | "store";
  reason: string;
  since: number;
  until: number;
}

/** The last event of each segment. `messages` are the whole conversation. */
export interface SessionState {
  type: "final_session_state";
  messages: ChatMessage[];
}

/** A step waits for an answer of the user while other steps run.
 *
 * When no other step runs any more, the run waits: an `interrupt` with the same id follows. */
export interface StepInterrupted {
  type: "step_interrupt";
  interrupt_id: string;
  kind: "plan_review" | "tool_approval" | "question";
  payload: Record<string, unknown>;
  options: string[];
  step_id: number;
  agent_name: string;
}

/** The question of a step was answered during the run, and the step continues. */
export interface StepResumed {
  type: "step_resumed";
  interrupt_id: string;
  step_id: number;
  agent_name: string;
}

/** A tab of the browser. */
export interface TabView {
  tab_id: number;
  url: string;
  title: string;
  is_current: boolean;
}

/** A tool was called. */
export interface ToolCalled {
  type: "tool_call";
  tool_call_id: string;
  tool_name: string;
  tool_input: Record<string, unknown>;
}

/** Text that a running tool printed since the previous such event.
 *
 * `python_repl_tool` and `bash_tool` send it when the text is 0.3 s old. It may lack text of the result. */
export interface ToolOutput {
  type: "tool_output";
  tool_call_id: string;
  tool_name: string;
  stream: "stdout" | "stderr";
  text: string;
}

/** A tool returned, or failed. `tool_result` is whole; the model gets extracts of a long one. */
export interface ToolReturned {
  type: "tool_call_result";
  tool_call_id: string;
  tool_name: string;
  tool_result: string;
}

/** The tokens and the duration of one model call.
 *
 * `cached_tokens` are those of the input that the endpoint had in its cache. Without any, the wire has no
 * such key. */
export interface UsageReported {
  type: "usage";
  agent_name: string;
  model: string;
  input_tokens: number;
  output_tokens: number;
  seconds: number;
  cached_tokens?: number;
}

/** The user answered what the run, or one of its steps, asked. `answer` is as it was sent. */
export interface UserAnswered {
  type: "user_answer";
  interrupt_id: string;
  answer: unknown;
}

/** What became of such a message; `content` is the lead's reply.
 *
 * A `user_answer` to a plan's review that asks something, or with which the plan stays the same, gets one,
 * too: it belongs to the newest `user_answer`, and no `user_message` has its id.
 *
 * `run_id` is the run that the message becomes, with the disposition `next_run`. A change of the plan that
 * was accepted and then could not be made is a message, too; with `refused`, `content` is the reason. */
export interface UserMessageAnswered {
  type: "user_message_answer";
  message_id: string;
  disposition: "answered" | "plan_changed" | "passed_on" | "replanned" | "finishing" | "next_run" | "dropped" | "refused";
  content: string;
  run_id?: string | null;
}

/** The user wrote to the team while it works. */
export interface UserMessageReceived {
  type: "user_message";
  message_id: string;
  content: string;
}

/** The team has ended its work. `messages` are the whole conversation. */
export interface WorkflowEnded {
  type: "end_of_workflow";
  workflow_id: string;
  messages: ChatMessage[];
}

/** The team begins to work. `input` is the conversation that it was given. */
export interface WorkflowStarted {
  type: "start_of_workflow";
  workflow_id: string;
  input: ChatMessage[];
}

export type EventData =
  | RunStarted
  | WorkflowStarted
  | AgentStarted
  | AgentEnded
  | ModelStarted
  | ModelEnded
  | ModelUnreachable
  | EffortNotUsed
  | RunWaiting
  | RunContinued
  | MessageChunk
  | MessageReplaced
  | ToolCalled
  | ToolOutput
  | ToolReturned
  | BrowserStepChanged
  | BrowserStateChanged
  | UserMessageReceived
  | UserMessageAnswered
  | PlanChanged
  | LeadDecided
  | GapsReviewed
  | ClaimsChecked
  | RunInterrupted
  | StepInterrupted
  | StepResumed
  | UserAnswered
  | ArtifactCreated
  | UsageReported
  | ErrorOccurred
  | RunStatusChanged
  | WorkflowEnded
  | SessionState;
