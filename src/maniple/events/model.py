"""Every event of a run, in the order of keys that the wire carries.

Source: `docs/wire.md`. A new event type is one class; nothing else lists them (`maniple.events.base`).
"""

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from maniple.events.base import Event, EventPart, Identifier, Verbatim
from maniple.evidence.reasons import ReasonCode
from maniple.types import (
    BROWSER_STATE,
    CLAIMS_CHECKED,
    EFFORT_NOT_USED,
    GAP_REVIEW,
    LEAD_DECISION,
    LEAD_REPLY,
    MODEL_UNREACHABLE,
    STEP_RESUMED,
    DecisionKind,
    Effort,
    OutageKind,
    RunStatus,
)


def _typescript(type_: str) -> Any:
    """Declare the TypeScript type of a field where JSON Schema cannot say it."""
    return Field(json_schema_extra={"tsType": type_})


class ChatMessage(EventPart):
    """One message of the conversation as clients see it."""

    role: Identifier
    content: Annotated[str | list[dict[str, Any]], _typescript("string | { type: string; text?: string }[]")]


class PlanStepView(EventPart):
    """One step of the plan and its status.

    `reason` is one line: why the step failed, is blocked or was skipped, or what its partial result lacks.
    `details` is the error itself, where the reason is a sentence about it. `repeats` is true for a report
    that only repeats the result of another step, so that no member works at it. `needs` are the ids of the
    steps whose results it gets, if not those of all before it. Otherwise the wire has no such keys.
    """

    id: int
    agent_name: Identifier
    title: str
    description: str
    status: Identifier
    reason: Annotated[str | None, _typescript("string")] = None
    details: Annotated[str | None, _typescript("string")] = None
    repeats: Annotated[bool | None, _typescript("boolean")] = None
    needs: Annotated[list[int] | None, _typescript("number[]")] = None

    @model_serializer(mode="wrap")
    def _without_empty_keys(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        optional = ("reason", "details", "repeats")
        return {
            key: value
            for key, value in serialize(self).items()
            if value or (key not in optional and value is not None)
        }


class RunGap(EventPart):
    """A step whose result the answer lacks: its title, and in one line why it was not done.

    `rejected` is true where the user did not approve it, so that no retry is offered. Otherwise the wire has
    no such key.
    """

    step: str
    reason: str
    rejected: Annotated[bool | None, _typescript("boolean")] = None

    @model_serializer(mode="wrap")
    def _without_empty_key(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in serialize(self).items() if value or key != "rejected"}


class MessageDelta(EventPart):
    """A piece of a message: text or reasoning, never both."""

    content: Annotated[str | None, _typescript("string")] = None
    reasoning_content: Annotated[str | None, _typescript("string")] = None

    @model_serializer
    def _only_what_is_set(self) -> dict[str, str]:
        if self.reasoning_content is not None:
            return {"reasoning_content": self.reasoning_content}
        return {"content": self.content or ""}


class TabView(EventPart):
    """A tab of the browser."""

    tab_id: int
    url: str
    title: str
    is_current: bool


class MarkView(EventPart):
    """A rectangle in a window, as fractions of the window's width and height."""

    x: float
    y: float
    width: float
    height: float


class RunStarted(Event, wire_name="run", scope="conversation"):
    """The first event of each segment of a run."""

    run_id: Identifier
    thread_id: Identifier


class WorkflowStarted(Event, wire_name="start_of_workflow", scope="conversation"):
    """The team begins to work. `input` is the conversation that it was given."""

    workflow_id: Identifier
    input: list[ChatMessage]


class AgentStarted(Event, wire_name="start_of_agent"):
    """An agent's turn begins: a worker's when the results that its step needs are there.

    `agent_id` is `{run_id}_{agent}_{step}`, with the suffix `_2` when a step has that agent twice.
    """

    agent_name: Identifier
    agent_id: Identifier


class AgentEnded(Event, wire_name="end_of_agent"):
    """An agent's turn has ended."""

    agent_name: Identifier
    agent_id: Identifier


class ModelStarted(Event, wire_name="start_of_llm"):
    """A model call begins."""

    agent_name: Identifier


class ModelEnded(Event, wire_name="end_of_llm"):
    """A model call has ended."""

    agent_name: Identifier


class ModelUnreachable(
    Event, wire_name="model_unreachable", ends_message=False, custom_event=MODEL_UNREACHABLE
):
    """The endpoint of the model does not answer, and the request is sent again.

    `attempt` is the number of that try, from 2; it begins after `seconds`. Tries go on for `left_seconds`.
    """

    attempt: int
    seconds: float
    left_seconds: float


class EffortNotUsed(Event, wire_name="effort_not_used", ends_message=False, custom_event=EFFORT_NOT_USED):
    """A model of the run does not take the effort that the run asks for, and works as it does by itself.

    `model` is its name. Each model is reported once, and again after the run has waited or was recovered.
    """

    effort: Effort
    model: str


class RunWaiting(Event, wire_name="run_waiting", ends_message=False):
    """Nothing of the run is at work, because its model or the store is away: the run is `queued` until then.

    `reason` says in one sentence what failed. The run waits from `since` until `until` (Unix seconds) at most
    and goes on by itself; then it fails.
    """

    waiting_for: Annotated[OutageKind, Verbatim()]
    reason: str
    since: float
    until: float


class RunContinued(Event, wire_name="run_continued", ends_message=False):
    """The run works again, after it waited `seconds`."""

    waiting_for: Annotated[OutageKind, Verbatim()]
    seconds: float


class MessageChunk(Event, wire_name="message"):
    """A piece of what a model writes. Its size depends on the network; the pieces together are the text."""

    message_id: Identifier
    delta: MessageDelta


class MessageReplaced(Event, wire_name="message_replaced"):
    """The message broke off, and another attempt says something else: that message takes its place.

    Only the view `live` has it.
    """

    message_id: Identifier
    replaced_by: Identifier


class ToolCalled(Event, wire_name="tool_call", scope="work"):
    """A tool was called."""

    tool_call_id: Identifier
    tool_name: str
    tool_input: dict[str, Any]


class ToolOutput(Event, wire_name="tool_output", scope="work", ends_message=False):
    """Text that a running tool printed since the previous such event.

    `python_repl_tool` and `bash_tool` send it when the text is 0.3 s old. It may lack text of the result.
    """

    tool_call_id: Identifier
    tool_name: str
    stream: Annotated[Literal["stdout", "stderr"], Verbatim()]
    text: str


class ToolReturned(Event, wire_name="tool_call_result", scope="work"):
    """A tool returned, or failed. `tool_result` is whole; the model gets extracts of a long one."""

    tool_call_id: Identifier
    tool_name: str
    tool_result: str


class BrowserStepChanged(Event, wire_name="browser_step", scope="work", ends_message=False):
    """A step of a running `browser` call, each time its state changes.

    The newest event of a `number` is the whole step. `started` is Unix time, `seconds` the duration so far.
    `element` is what the action is applied to, as the page describes it; `mark` is its place in the window.
    `screenshot` is the address of the picture on which the action was decided.
    """

    tool_call_id: Identifier
    number: int
    state: Annotated[
        Literal["idle", "thinking", "acting", "observing", "completed", "failed", "cancelled"], Verbatim()
    ]
    phase: str = ""
    thought: str = ""
    action: Annotated[
        dict[str, Any] | None, _typescript("{ name: string; parameters: Record<string, unknown> } | null")
    ] = None
    observation: str | None = None
    success: bool | None = None
    started: float = 0.0
    seconds: float = 0.0
    mark: MarkView | None = None
    element: Annotated[dict[str, str] | None, _typescript("{ role: string; name: string } | null")] = None
    screenshot: str | None = None


class BrowserStateChanged(Event, wire_name="browser_state", ends_message=False, custom_event=BROWSER_STATE):
    """The page that the browser shows. `screenshot` is the address of an artifact, null without a picture."""

    url: str
    title: str
    tabs: list[TabView] = Field(default_factory=list[TabView])
    screenshot: str | None = None


class UserMessageReceived(Event, wire_name="user_message", ends_message=False):
    """The user wrote to the team while it works."""

    message_id: Identifier
    content: str


class UserMessageAnswered(
    Event, wire_name="user_message_answer", ends_message=False, custom_event=LEAD_REPLY
):
    """What became of such a message; `content` is the lead's reply.

    A `user_answer` to a plan's review that asks something, or with which the plan stays the same, gets one,
    too: it belongs to the newest `user_answer`, and no `user_message` has its id.

    `run_id` is the run that the message becomes, with the disposition `next_run`. A change of the plan that
    was accepted and then could not be made is a message, too; with `refused`, `content` is the reason.
    """

    message_id: Identifier
    disposition: Annotated[
        Literal[
            "answered",
            "plan_changed",
            "passed_on",
            "replanned",
            "finishing",
            "next_run",
            "dropped",
            "refused",
        ],
        Verbatim(),
    ]
    content: str
    run_id: Annotated[str | None, Verbatim()] = None


class PlanChanged(Event, wire_name="plan", ends_message=False):
    """The whole plan, at each change.

    A `draft` has the steps that are written so far. It is no plan yet: the plan, or the next draft, replaces
    it. Otherwise the wire has no such key.
    """

    title: str
    steps: list[PlanStepView]
    draft: Annotated[bool, _typescript("boolean")] = False

    @model_serializer(mode="wrap")
    def _without_draft(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data = serialize(self)
        return data if self.draft else {key: value for key, value in data.items() if key != "draft"}

    @property
    def is_request(self) -> bool:
        """Whether its only step is the request itself, for an agent that answers alone."""
        return not self.draft and len(self.steps) == 1 and self.steps[0].agent_name != "reporter"

    @property
    def worked_steps(self) -> list[PlanStepView]:
        """The steps to show: all but the request itself, and a report that repeats another step's result."""
        return [] if self.is_request else [step for step in self.steps if not step.repeats]


class LeadDecided(Event, wire_name="lead_decision", ends_message=False, custom_event=LEAD_DECISION):
    """The lead has decided how the run continues after step `step_id`, titled `title`, has failed.

    `agent_name` is the member that takes over after `reassign`; otherwise it is null. `hint` is the lead's
    advice for the next try.
    """

    step_id: int
    title: str
    decision: Annotated[DecisionKind, Verbatim()]
    agent_name: Annotated[str | None, Verbatim()] = None
    hint: str | None = None


class ResearchGapView(EventPart):
    """A question that the results leave open, and why it is needed. `open`: no step can answer it."""

    question: str
    why: str
    open: bool


class RefusedStepView(EventPart):
    """A step that the lead wanted and that was not added to the plan, with the reason."""

    title: str
    reason: str


class GapsReviewed(Event, wire_name="gap_review", ends_message=False, custom_event=GAP_REVIEW):
    """Before the report of a deep run: what is still open, and which steps were added to the plan for it.

    `round` counts the rounds of added steps from 1; it is 0 if none was added yet. `steps` are the titles of
    the added steps, which the next `plan` has. `notice` says why no step was added, or is null.
    """

    round: int
    questions: list[ResearchGapView]
    steps: list[str]
    refused: list[RefusedStepView]
    notice: str | None = None


class PassageView(EventPart):
    """A sentence or table row of what was read.

    `source` is the number of the source; 0 is what the user said or a program of the run printed. `start` is
    the offset in characters in the text with the index `text_index` among the source's texts.
    """

    source: int
    text: str
    text_index: int
    start: int


class ReasonView(EventPart):
    """Why a claim or citation got its verdict: a code, and the values of the sentence that it stands for."""

    code: Annotated[str, Verbatim(), _typescript(" | ".join(f'"{one}"' for one in ReasonCode))]
    values: dict[str, str]


class ClaimView(EventPart):
    """A claim of the report, without citations and markup.

    `row` and `column` are the heads of a claim that is a cell of a table. `passage` shows the verdict.
    `reasons` are the parts of `reason` for clients in other languages; events of earlier versions have none.
    `mark` is the number of its mark among all `[unverified]` in the answer, from 1; null without one.
    """

    text: str
    row: str
    column: str
    verdict: Annotated[Literal["supported", "contradicted", "absent", "open"], Verbatim()]
    reason: str
    citations: list[int]
    passage: PassageView | None
    mark: int | None
    reasons: list[ReasonView] = Field(default_factory=list[ReasonView])


class MarkedCitation(EventPart):
    """A citation that could not be verified: an address, a source number or a quotation, and its mark."""

    kind: Annotated[Literal["url", "number", "quotation"], Verbatim()]
    text: str
    reason: str
    mark: int
    reasons: list[ReasonView] = Field(default_factory=list[ReasonView])


class ClaimsChecked(Event, wire_name="claims", ends_message=False, custom_event=CLAIMS_CHECKED):
    """The check of a report has ended. The newest one of the turn that wrote the answer counts.

    - `score` is the line with which the report ends, as Markdown; "" if nothing in it could be checked.
    - `supported`: a source, or a calculation, says so; `contradicted`: a source says something else, or the
      claim's own arithmetic is wrong; `absent`: a figure, date or quotation stands nowhere; `open`: no rule
      decides it; `not_checked`: claims behind the limit; `exempt`: nothing in them has to be in a source.
    - `citations` are the citations of all claims; `supporting_citations` those that are known to say what
      their claim says.
    - `claims` are at most 500, those with a mark first; `unlisted` is the number of the others. Exempt ones
      are never listed. `marked_citations` are at most 500, too.
    - `unsearched` are the numbers of sources that no claim cites and that were too long to be searched.
    """

    score: str
    supported: int
    contradicted: int
    absent: int
    open: int
    not_checked: int
    exempt: int
    citations: int
    supporting_citations: int
    claims: list[ClaimView]
    unlisted: int
    marked_citations: list[MarkedCitation]
    unsearched: list[int]


class RunInterrupted(Event, wire_name="interrupt"):
    """The run waits for an answer of the user."""

    interrupt_id: Identifier
    kind: Annotated[Literal["plan_review", "tool_approval", "question"], Verbatim()]
    payload: dict[str, Any]
    options: list[str]


class StepInterrupted(RunInterrupted, wire_name="step_interrupt"):
    """A step waits for an answer of the user while other steps run.

    When no other step runs any more, the run waits: an `interrupt` with the same id follows.
    """

    step_id: int
    agent_name: Identifier


class StepResumed(Event, wire_name="step_resumed", custom_event=STEP_RESUMED):
    """The question of a step was answered during the run, and the step continues."""

    interrupt_id: Identifier
    step_id: int
    agent_name: Identifier


class UserAnswered(Event, wire_name="user_answer", ends_message=False):
    """The user answered what the run, or one of its steps, asked. `answer` is as it was sent."""

    interrupt_id: Identifier
    answer: Any


class ArtifactCreated(Event, wire_name="artifact", ends_message=False):
    """A page that the run read, or a file that it wrote, can be downloaded from `url`; `size` is in bytes.

    It comes shortly after the `tool_call_result`, and for later changes before `run_status`. `source` is the
    number of the source whose text a page is. A file has no such key.
    """

    artifact_id: Identifier
    name: str
    media_type: str
    size: int
    url: str
    source: Annotated[int | None, _typescript("number")] = None

    @model_serializer(mode="wrap")
    def _without_empty_key(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in serialize(self).items() if value is not None or key != "source"}


class UsageReported(Event, wire_name="usage", ends_message=False):
    """The tokens and the duration of one model call.

    `cached_tokens` are those of the input that the endpoint had in its cache. Without any, the wire has no
    such key.
    """

    agent_name: Identifier
    model: str
    input_tokens: int
    output_tokens: int
    seconds: float
    cached_tokens: Annotated[int, _typescript("number")] = 0

    @model_serializer(mode="wrap")
    def _without_zero(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data = serialize(self)
        return (
            data
            if self.cached_tokens
            else {key: value for key, value in data.items() if key != "cached_tokens"}
        )


class ErrorOccurred(Event, wire_name="error"):
    """The error that ends a run or its stream."""

    code: Identifier
    message: str
    agent_name: Annotated[str | None, Verbatim()]
    retryable: bool


class RunStatusChanged(Event, wire_name="run_status"):
    """The status with which a segment ends.

    `gaps` are the steps whose results the answer lacks. Without any, the wire has no such key. A failed run
    that has them has an answer, which code has put together. Those of a cancelled retry are still to be done.
    """

    status: Annotated[RunStatus, Verbatim()]
    gaps: Annotated[list[RunGap] | None, _typescript("RunGap[]")] = None

    @model_serializer(mode="wrap")
    def _without_empty_gaps(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data = serialize(self)
        return data if self.gaps else {key: value for key, value in data.items() if key != "gaps"}


class WorkflowEnded(Event, wire_name="end_of_workflow", scope="conversation"):
    """The team has ended its work. `messages` are the whole conversation."""

    workflow_id: Identifier
    messages: list[ChatMessage]


class SessionState(Event, wire_name="final_session_state", scope="conversation"):
    """The last event of each segment. `messages` are the whole conversation."""

    messages: list[ChatMessage]
