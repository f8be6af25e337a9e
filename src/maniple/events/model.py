"""Every event of a run, in the order of keys that the wire carries.

Source: `docs/wire.md`. An event's `type` is the SSE event name; all other fields are its data.
"""

import json
import time
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    TypeAdapter,
)

from maniple.events.parts import ChatMessage, Delta, PlanStepView, TabView
from maniple.types import RunStatus


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True)

    _at: float = PrivateAttr(default_factory=time.time)

    @property
    def at(self) -> float:
        """When it was made, which is when it happened, in Unix seconds; no part of what it says.

        It may be told later: agents that work at once are told one after another.
        """
        return self._at

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def data(self) -> dict[str, Any]:
        """Return the event's data, without its type."""
        return self.model_dump(mode="json", exclude={"type"})


class RunStarted(_Event):
    type: Literal["run"] = "run"
    run_id: str
    thread_id: str


class WorkflowStarted(_Event):
    type: Literal["start_of_workflow"] = "start_of_workflow"
    workflow_id: str
    input: list[ChatMessage]


class AgentStarted(_Event):
    type: Literal["start_of_agent"] = "start_of_agent"
    agent_name: str
    agent_id: str


class AgentEnded(_Event):
    type: Literal["end_of_agent"] = "end_of_agent"
    agent_name: str
    agent_id: str


class ModelStarted(_Event):
    type: Literal["start_of_llm"] = "start_of_llm"
    agent_name: str


class ModelEnded(_Event):
    type: Literal["end_of_llm"] = "end_of_llm"
    agent_name: str


class Message(_Event):
    type: Literal["message"] = "message"
    message_id: str
    delta: Delta


class ToolCalled(_Event):
    type: Literal["tool_call"] = "tool_call"
    tool_call_id: str
    tool_name: str
    tool_input: dict[str, Any]


class ToolPrinted(_Event):
    type: Literal["tool_output"] = "tool_output"
    tool_call_id: str
    tool_name: str
    stream: Literal["stdout", "stderr"]
    text: str


class ToolReturned(_Event):
    type: Literal["tool_call_result"] = "tool_call_result"
    tool_call_id: str
    tool_name: str
    tool_result: str


class MarkView(BaseModel):
    """Where something is in a window, from 0 to 1 of its width and height."""

    model_config = ConfigDict(frozen=True)

    x: float
    y: float
    width: float
    height: float


class BrowserStepped(_Event):
    """A step of a call of `browser` that is under way, each time its state changes.

    The newest of a `number` is the whole step. `action` is `{name, parameters}`; `started` is Unix time;
    `element`, in the page's words, is the `{role, name}` of what is acted on, `mark` where that was in the
    window, and `screenshot` the address of the picture that the action was decided on.
    """

    type: Literal["browser_step"] = "browser_step"
    tool_call_id: str
    number: int
    state: Literal["idle", "thinking", "acting", "observing", "completed", "failed", "cancelled"]
    phase: str = ""
    thought: str = ""
    action: dict[str, Any] | None = None
    observation: str | None = None
    success: bool | None = None
    started: float = 0.0
    seconds: float = 0.0
    mark: MarkView | None = None
    element: dict[str, str] | None = None
    screenshot: str | None = None


class BrowserSeen(_Event):
    """Where the browser is; `screenshot` is the address of an artifact, when somebody wants pictures."""

    type: Literal["browser_state"] = "browser_state"
    url: str
    title: str
    tabs: list[TabView]
    screenshot: str | None = None


class PlanChanged(_Event):
    type: Literal["plan"] = "plan"
    title: str
    steps: list[PlanStepView]


class Interrupted(_Event):
    type: Literal["interrupt"] = "interrupt"
    interrupt_id: str
    kind: Literal["plan_review", "tool_approval", "question"]
    payload: dict[str, Any]
    options: list[str]


class ArtifactMade(_Event):
    type: Literal["artifact"] = "artifact"
    artifact_id: str
    name: str
    media_type: str
    size: int
    url: str


class Usage(_Event):
    type: Literal["usage"] = "usage"
    agent_name: str
    model: str
    input_tokens: int
    output_tokens: int
    seconds: float


class Failed(_Event):
    type: Literal["error"] = "error"
    code: str
    message: str
    agent_name: str | None
    retryable: bool


class RunStatusChanged(_Event):
    type: Literal["run_status"] = "run_status"
    status: RunStatus


class WorkflowEnded(_Event):
    type: Literal["end_of_workflow"] = "end_of_workflow"
    workflow_id: str
    messages: list[ChatMessage]


class SessionState(_Event):
    type: Literal["final_session_state"] = "final_session_state"
    messages: list[ChatMessage]


Event = Annotated[
    RunStarted
    | WorkflowStarted
    | AgentStarted
    | AgentEnded
    | ModelStarted
    | ModelEnded
    | Message
    | ToolCalled
    | ToolPrinted
    | ToolReturned
    | BrowserStepped
    | BrowserSeen
    | PlanChanged
    | Interrupted
    | ArtifactMade
    | Usage
    | Failed
    | RunStatusChanged
    | WorkflowEnded
    | SessionState,
    Field(discriminator="type"),
]

_EVENTS: TypeAdapter[Event] = TypeAdapter(Event)


def as_json(event: Event) -> str:
    """Return an event's data as JSON in one line; scripts other than Latin stay themselves."""
    return json.dumps(event.data(), ensure_ascii=False)


def read_event(type_: str, data: str) -> Event:
    """Return the event whose `data` is this JSON text, as a store or a client has it.

    When it happened is for the store to say: `at` is the time of this call.
    """
    return _EVENTS.validate_python({"type": type_, **json.loads(data)})
