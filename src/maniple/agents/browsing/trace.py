"""The trace of a call of the browser: its steps, as events and from the stored conversation.

The trace itself does not outlive a pause; what continues after one is taken from the stored state.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
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
from maniple.text import without_thoughts
from maniple.tools.browser import BROWSER_USE
from maniple.tools.registry import redact_arguments
from maniple.types import BROWSER_STEP

ExecutionState = Literal["idle", "thinking", "acting", "observing", "completed", "failed", "cancelled"]
EVENT_CHARACTERS = 2_000
"""The limit of thoughts and observations in events; the conversation has them in full."""
_MAX_PARAMETER_CHARACTERS = 500
MAX_EXTRACTED_CHARACTERS = 12_000
"""The limit of the extracted contents of a call that are stored when the conversation is shortened."""
_REMINDER = "[From maniple] What you extracted earlier, kept while the conversation was shortened:\n"


@dataclass(frozen=True, slots=True)
class ReActStep:
    """A cycle of thinking, acting and observing; each call of an answer is a step."""

    number: int
    """Counted from 1 in each call of the browser."""
    thought: str = ""
    """The reason of the action; of several calls in an answer only the first has it."""
    action: Mapping[str, Any] | None = None
    """`{name, parameters}`."""
    observation: str | None = None
    success: bool | None = None
    started: float = 0.0
    """Unix time in seconds."""
    seconds: float = 0.0
    mark: Mapping[str, float] | None = None
    """The position of the element acted on: `{x, y, width, height}` of the window, from 0 to 1 each."""
    element: Mapping[str, str] | None = None
    """The element acted on: `{role, name}`, from the page."""
    screenshot: str | None = None
    """The address of the screenshot on which the action was decided."""


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
    extracted_before: list[str] = field(default_factory=list)
    """The extracted contents of earlier phases."""
    answers: int = 0
    """The number of answers in this phase, including those before a pause."""
    step: ReActStep | None = None
    """The newest step."""
    recording: Recording = field(default_factory=Recording)
    extracted: list[str] = field(default_factory=list)
    """The extracted contents, oldest first."""

    @property
    def number(self) -> int:
        """The number of steps so far."""
        return self.step.number if self.step else self.steps_before

    def begin(self, phase: str, answers: int, steps: int, extracted: Sequence[str]) -> None:
        """Begin or continue a phase, after so many answers and steps and with these extracted contents."""
        self.phase, self.offset, self.steps_before = phase, answers, steps
        self.extracted_before, self.extracted, self.answers = [*extracted], [*extracted], 0

    async def think(self, steps: int) -> None:
        """Begin the step after `steps` steps of this phase."""
        self.recording.page = ObservedPage()
        self.step = ReActStep(self.steps_before + steps + 1, started=time.time())
        await self._send("thinking", self.step)

    def note(self, thought: str) -> None:
        """Record the reason of the next action, or the answer."""
        if self.step is not None:
            self.step = _update_step(self.step, thought=thought[:EVENT_CHARACTERS])

    async def act(self, place: int, thought: str, name: str, parameters: Mapping[str, Any]) -> ReActStep:
        """Record the action of the step at `place` in this phase, from 1; its picture becomes a frame."""
        number, newest = self.steps_before + place, self.step
        known = newest is not None and newest.number == number and newest.action is None
        step = newest if newest is not None and known else ReActStep(number, started=time.time())
        shown = {key: _shorten(value) for key, value in parameters.items()}
        page = self.recording.page
        element = page.acted_on(name, shown)
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


CURRENT_TRACE: ContextVar[BrowserTrace | None] = ContextVar("maniple_browser_course", default=None)
"""The trace of the running call of the browser; None if an agent uses `browser_use` itself."""


class TraceMiddleware(AgentMiddleware[Any, Any]):
    """Middleware that records each action of each answer as a step.

    It also reminds the model of extracted contents that are no longer in the conversation.
    """

    state_schema = ExtractionState

    async def awrap_model_call(
        self, request: ModelRequest, handler: ModelHandler
    ) -> ModelResponse | ExtendedModelResponse:
        trace = CURRENT_TRACE.get()
        if trace is None:
            return await handler(request)
        trace.answers = count_answers(request.state)
        await trace.think(steps_in(request.state["messages"], request.state))
        extracted = extracted_in(request.state)
        trace.extracted = fit_extracted([*trace.extracted_before, *extracted])
        response = await handler(_with_reminder(request, trace.extracted))
        answer = response.result[0] if response.result else None
        if isinstance(answer, AIMessage):
            trace.answers += 1
            trace.note(thought_of(answer))
        if extracted == request.state.get("extracted", []):
            return response
        # Stored before the conversation may be shortened, which removes it.
        return ExtendedModelResponse(response, Command(update={"extracted": extracted}))

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        trace = CURRENT_TRACE.get()
        if trace is None:
            return await handler(request)
        trace.answers = count_answers(request.state)
        # Steps are sent in the order of the calls.
        await wait_for_turn(request, is_approved=True)
        name = request.tool_call["name"]
        given = redact_arguments(request.tool, request.tool_call["args"])
        action = str(given.pop("action", "")) if name == BROWSER_USE else name
        place, thought = step_of(request.state, request.tool_call["id"])
        step = await trace.act(place, thought, action, given)
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


def steps_in(messages: Sequence[AnyMessage], state: Mapping[str, Any]) -> int:
    """Count the steps of the answers in `messages`, including those that `state` has removed."""
    own = messages[state.get("given", 0) :]
    present = sum(max(len(one.tool_calls), 1) for one in own if isinstance(one, AIMessage))
    return present + max(state.get("answers_left_out", 0), state.get("calls_left_out", 0))


def step_of(state: Mapping[str, Any], call_id: str | None) -> tuple[int, str]:
    """Return the position of a call among an agent's steps, from 1, and its thought."""
    messages = state["messages"]
    at = next(at for at in reversed(range(len(messages))) if isinstance(messages[at], AIMessage))
    answer = messages[at]
    place = next((n for n, call in enumerate(answer.tool_calls) if call["id"] == call_id), 0)
    return steps_in(messages[:at], state) + place + 1, "" if place else thought_of(answer)


def thought_of(answer: AIMessage) -> str:
    """Return the reason that an answer gives."""
    return without_thoughts(answer.text) or str(answer.additional_kwargs.get("reasoning_content", ""))


def extracted_in(state: Mapping[str, Any]) -> list[str]:
    """Return the stored and present extracted contents, oldest first, within the limit."""
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
