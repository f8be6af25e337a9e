"""The trace of a browser call: its steps, sent as events and counted in the stored conversation.

The trace itself is lost in a pause. After a pause, its values are computed from the stored state.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal, NotRequired

from langchain.agents.middleware import AgentMiddleware, ExtendedModelResponse, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr, ToolCallRequest
from langchain_core.callbacks import adispatch_custom_event
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.types import Command

from maniple.agents.browsing.recording import ObservedPage, Recording, visible_mark
from maniple.agents.middleware.base import ModelHandler, ToolAnswer, ToolHandler
from maniple.agents.middleware.call_order import wait_for_turn
from maniple.agents.middleware.fencing import fence_untrusted
from maniple.agents.middleware.limits import StepState, count_answers
from maniple.agents.step_state import step_state
from maniple.text import without_thoughts
from maniple.tools.browser import BROWSER_USE
from maniple.tools.registry import redact_arguments
from maniple.types import BROWSER_STEP

ExecutionState = Literal["idle", "thinking", "acting", "observing", "completed", "failed", "cancelled"]
EVENT_CHARACTERS = 2_000
"""The limit of thoughts and observations in events. The conversation contains them in full."""
_MAX_PARAMETER_CHARACTERS = 500
MAX_EXTRACTED_CHARACTERS = 12_000
"""The limit of the extracted contents that a call retains when the conversation is shortened."""
_REMINDER = "[From maniple] What you extracted earlier, kept while the conversation was shortened:\n"


@dataclass(frozen=True, slots=True)
class ReActStep:
    """A cycle of thinking, acting and observing. Each tool call of an answer is one step."""

    number: int
    """The number of the step, from 1 in each browser call."""
    thought: str = ""
    """The reason for the action. If an answer has several calls, only the first step has it."""
    action: Mapping[str, Any] | None = None
    """`{name, parameters}`."""
    observation: str | None = None
    success: bool | None = None
    started: float = 0.0
    """Unix time in seconds."""
    seconds: float = 0.0
    mark: Mapping[str, float] | None = None
    """The box of the element that the action used:

    `{x, y, width, height}`, each from 0 to 1 of the window.
    """
    element: Mapping[str, str] | None = None
    """The element that the action used: `{role, name}`, as the page gives them."""
    screenshot: str | None = None
    """The URL path of the screenshot that the model saw before it chose the action."""


class ExtractionState(StepState):
    """An agent's messages, and the extracted contents that were removed from them."""

    extracted: NotRequired[Annotated[list[str], PrivateStateAttr]]


@dataclass(slots=True)
class BrowserTrace:
    """The steps of a call of the browser in this process."""

    is_recorded: Callable[[], bool] = lambda: False
    """Whether pictures are stored now."""
    phase: str = ""
    offset: int = 0
    """The number of answers in earlier phases."""
    steps_before: int = 0
    """The number of steps in earlier phases."""
    extracted_before: list[str] = field(default_factory=list[str])
    """The extracted contents of earlier phases."""
    answers: int = 0
    """The number of answers in this phase, including those before a pause."""
    step: ReActStep | None = None
    """The newest step."""
    recording: Recording = field(default_factory=Recording)
    extracted: list[str] = field(default_factory=list[str])
    """The extracted contents, oldest first."""

    @property
    def number(self) -> int:
        """The number of steps so far."""
        return self.step.number if self.step else self.steps_before

    def begin(self, phase: str, answers: int, steps: int, extracted: Sequence[str]) -> None:
        """Begin or continue a phase.

        `answers`, `steps` and `extracted` are the numbers of answers and steps of the earlier phases, and
        their extracted contents.
        """
        self.phase, self.offset, self.steps_before = phase, answers, steps
        self.extracted_before, self.extracted, self.answers = [*extracted], [*extracted], 0

    async def think(self, steps: int) -> None:
        """Begin the step after `steps` steps of this phase."""
        self.recording.page = ObservedPage()
        self.step = ReActStep(self.steps_before + steps + 1, started=time.time())
        await self._send("thinking", self.step)

    def set_thought(self, thought: str) -> None:
        """Record the reason for the next action, or the answer."""
        if self.step is not None:
            self.step = _update_step(self.step, thought=thought[:EVENT_CHARACTERS])

    async def act(self, position: int, thought: str, name: str, parameters: Mapping[str, Any]) -> ReActStep:
        """Record the action of the step at `position` (from 1) in this phase.

        Its screenshot becomes a frame.
        """
        number, newest = self.steps_before + position, self.step
        known = newest is not None and newest.number == number and newest.action is None
        step = newest if newest is not None and known else ReActStep(number, started=time.time())
        shown = {key: _shorten(value) for key, value in parameters.items()}
        page = self.recording.page
        element = page.find_target(name, shown)
        self.step = _update_step(
            step,
            thought=thought[:EVENT_CHARACTERS],
            action={"name": name, "parameters": shown},
            mark=visible_mark(element.box) if element and element.box else None,
            element={"role": element.role, "name": element.name} if element else None,
            screenshot=page.address,
        )
        self.recording.add(number, name, shown)
        await self._send("acting", self.step)
        return self.step

    async def observe(self, step: ReActStep, observation: str, *, success: bool) -> None:
        """Record the result of a step."""
        step = _update_step(step, observation=observation[:EVENT_CHARACTERS], success=success)
        if self.step is None or self.step.number <= step.number:
            self.step = step
        await self._send("observing", step)

    async def end(self, state: ExecutionState) -> None:
        """Send the newest step with the final state of the call."""
        if self.step is not None:
            await self._send(state, self.step)

    async def _send(self, state: ExecutionState, step: ReActStep) -> None:
        fields = asdict(step)
        event = {"number": fields.pop("number"), "state": state, "phase": self.phase, **fields}
        await adispatch_custom_event(BROWSER_STEP, event)


def current_trace() -> BrowserTrace | None:
    """Return the trace of the running browser call; None if an agent calls `browser_use` itself."""
    return step_state(BrowserTrace)


class TraceMiddleware(AgentMiddleware[Any, Any]):
    """Middleware that records each action of each answer as a step.

    It also reminds the model of extracted contents that are no longer in the conversation.
    """

    state_schema = ExtractionState

    async def awrap_model_call(
        self, request: ModelRequest, handler: ModelHandler
    ) -> ModelResponse | ExtendedModelResponse:
        trace = current_trace()
        if trace is None:
            return await handler(request)
        trace.answers = count_answers(request.state)
        await trace.think(count_steps(request.state["messages"], request.state))
        extracted = collect_extracted(request.state)
        trace.extracted = fit_extracted([*trace.extracted_before, *extracted])
        response = await handler(_with_reminder(request, trace.extracted))
        answer = response.result[0] if response.result else None
        if isinstance(answer, AIMessage):
            trace.answers += 1
            trace.set_thought(read_thought(answer))
        if extracted == request.state.get("extracted", []):
            return response
        # Stored now, because the messages that contain it may be removed when the conversation is shortened.
        return ExtendedModelResponse(response, Command(update={"extracted": extracted}))

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        trace = current_trace()
        if trace is None:
            return await handler(request)
        trace.answers = count_answers(request.state)
        # Steps must be sent in the order of the calls.
        await wait_for_turn(request, begins=False)
        name = request.tool_call["name"]
        given = redact_arguments(request.tool, request.tool_call["args"])
        action = str(given.pop("action", "")) if name == BROWSER_USE else name
        position, thought = locate_step(request.state, request.tool_call["id"])
        step = await trace.act(position, thought, action, given)
        answer = await handler(request)
        if isinstance(answer, ToolMessage):
            succeeded = answer.status != "error"
            await trace.observe(step, answer.text, success=succeeded)
            if succeeded and action == "extract_content":
                trace.extracted = fit_extracted([*trace.extracted, answer.text])
        return answer


def _with_reminder(request: ModelRequest, extracted: Sequence[str]) -> ModelRequest:
    present = "\n".join(message.text for message in request.messages if isinstance(message, ToolMessage))
    lost = [one for one in extracted if one not in present]
    if not lost:
        return request
    reminder = HumanMessage(_REMINDER + fence_untrusted("\n".join(lost)))
    return request.override(messages=[*request.messages, reminder])


def count_steps(messages: Sequence[AnyMessage], state: Mapping[str, Any]) -> int:
    """Count the steps of the answers in `messages`, including those removed from `state`."""
    own = messages[state.get("given", 0) :]
    present = sum(max(len(one.tool_calls), 1) for one in own if isinstance(one, AIMessage))
    return present + max(state.get("answers_left_out", 0), state.get("calls_left_out", 0))


def locate_step(state: Mapping[str, Any], call_id: str | None) -> tuple[int, str]:
    """Return the position (from 1) of a call among an agent's steps, and the thought of its answer."""
    messages = state["messages"]
    at = next(at for at in reversed(range(len(messages))) if isinstance(messages[at], AIMessage))
    answer = messages[at]
    position = next((n for n, call in enumerate(answer.tool_calls) if call["id"] == call_id), 0)
    return count_steps(messages[:at], state) + position + 1, "" if position else read_thought(answer)


def read_thought(answer: AIMessage) -> str:
    """Return the reason in an answer: its text, or the model's reasoning content."""
    return without_thoughts(answer.text) or str(answer.additional_kwargs.get("reasoning_content", ""))


def collect_extracted(state: Mapping[str, Any]) -> list[str]:
    """Return the extracted contents in the state and in the messages, oldest first, within the limit."""
    messages = state["messages"]
    goals = {
        call["id"]
        for one in messages
        if isinstance(one, AIMessage)
        for call in one.tool_calls
        if call["name"] == BROWSER_USE and call["args"].get("action") == "extract_content"
    }
    extracted = list(state.get("extracted", ()))
    for one in messages:
        if isinstance(one, ToolMessage) and one.tool_call_id in goals and one.status != "error":
            extracted += [one.text] if one.text not in extracted else []
    return fit_extracted(extracted)


def fit_extracted(extracted: Sequence[str]) -> list[str]:
    """Return the contents that fit within the limit."""
    fitting: list[str] = []
    for one in extracted:
        if sum(map(len, fitting)) + len(one) <= MAX_EXTRACTED_CHARACTERS:
            fitting.append(one)
    return fitting


def _update_step(step: ReActStep, **changes: Any) -> ReActStep:
    return replace(step, seconds=round(max(time.time() - step.started, 0.0), 3), **changes)


def _shorten(value: Any) -> Any:
    return value[:_MAX_PARAMETER_CHARACTERS] if isinstance(value, str) else value
