"""How far an agent may go in one step."""

import asyncio
import functools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr, ToolCallRequest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import StructuredTool

from maniple.agents.middleware.base import ModelHandler, ToolAnswer, ToolHandler
from maniple.agents.middleware.call_order import preceding_calls
from maniple.agents.middleware.call_records import AUTHOR_KEY
from maniple.agents.middleware.fencing import fence_untrusted
from maniple.agents.task import StepFailed, truncate_middle
from maniple.errors import BudgetExhausted, ToolFailure
from maniple.tools.third_party_tools import in_thread
from maniple.types import SUMMARY_SOURCE

PARTIAL_WORK_CHARACTERS = 6_000
"""Of the record of a step that was cut off."""


@dataclass(frozen=True, slots=True)
class StepLimits:
    """The limits of one step; at each the agent or its team is told, and no run ends by them."""

    model_calls: int = 25
    tool_calls: int = 100
    tool_seconds: float = 600
    """Of one call of a tool that does not say its own `timeout_seconds`."""


class StepState(AgentState[Any]):
    """An agent's messages, and how many answers and results of calls are not among them any more."""

    given: NotRequired[int]
    """How many messages were there before the step began: they may hold answers to earlier requests."""
    answers_left_out: NotRequired[Annotated[int, PrivateStateAttr]]
    calls_left_out: NotRequired[Annotated[int, PrivateStateAttr]]


def count_answers(state: Mapping[str, Any]) -> int:
    """Return how often the model has answered in this step, shortened records included."""
    own = state["messages"][state.get("given", 0) :]
    kept = sum(isinstance(message, AIMessage) for message in own)
    return kept + state.get("answers_left_out", 0)


class ModelCallLimit(AgentMiddleware[Any, Any]):
    """End the step after `most` answers of the model.

    LangChain's own middleware counts in two nodes of its own, before and after each call: that is two steps
    of the graph more, each with a checkpoint. The answers are in the agent's state anyway.
    """

    state_schema = StepState

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        if count_answers(request.state) >= self._most:
            raise StepFailed(f"the limit of {self._most} model calls for one step was reached")
        return await handler(request)


_BEYOND = (
    "Not run: the limit of {most} tool calls for one step was reached. Answer now with what you have found, "
    "and say what is missing."
)


def count_tool_results(state: Mapping[str, Any]) -> int:
    """Return how many calls of this step have their results, those of shortened records included."""
    ended = sum(isinstance(message, ToolMessage) for message in state["messages"])
    return ended + state.get("calls_left_out", 0)


class ToolCallLimit(AgentMiddleware[Any, Any]):
    """Tells the model so instead of running a call beyond the first `most`.

    LangChain's own middleware counts in a node of the graph after each answer; the results are there anyway.
    """

    state_schema = StepState

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        if count_tool_results(request.state) + len(preceding_calls(request)) < self._most:
            return await handler(request)
        call = request.tool_call
        words = _BEYOND.format(most=self._most)
        refusal = ToolMessage(words, tool_call_id=call["id"], name=call["name"], status="error")
        refusal.additional_kwargs[AUTHOR_KEY] = "maniple"
        return refusal


TIMEOUT_KEY = "timeout_seconds"
"""What a tool's `metadata` may say; `None` is for one that bounds itself, as the sandbox does."""


class ToolTimeouts(AgentMiddleware[Any, Any]):
    """Cancels a call after the seconds that its tool's `metadata` says, else after `default_seconds`.

    The call's result is then a `ToolFailure`. A tool that blocks in a thread is left there: Python cannot end
    it.
    """

    def __init__(self, default_seconds: float) -> None:
        super().__init__()
        self._default_seconds = default_seconds

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        tool = request.tool
        seconds = (tool.metadata or {}).get(TIMEOUT_KEY, self._default_seconds) if tool else None
        if seconds is None:
            return await handler(request)
        if isinstance(tool, StructuredTool):
            return await handler(request.override(tool=_bounded(tool, seconds)))
        async with _at_most(seconds):
            return await handler(request)


def _bounded(tool: StructuredTool, seconds: float) -> StructuredTool:
    """Return the tool with the bound inside: what fails in there, LangChain tells as the end of the call."""
    run, blocking = tool.coroutine, tool.func
    if run is None and blocking is not None:
        run = in_thread(blocking)
    if run is None:
        return tool
    unbounded = run

    @functools.wraps(unbounded)
    async def bounded(*args: Any, **kwargs: Any) -> Any:
        async with _at_most(seconds):
            return await unbounded(*args, **kwargs)

    return tool.model_copy(update={"coroutine": bounded})


@asynccontextmanager
async def _at_most(seconds: float) -> AsyncIterator[None]:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise  # the tool's own
        words = f"It gave no result within {seconds:g} seconds and was stopped."
        raise ToolFailure(f"{words} What it did until then is unknown.") from None


class PartialWork(AgentMiddleware[Any, Any]):
    """Give `BudgetExhausted` and `StepFailed` what the agent said and its tools returned before it."""

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        try:
            return await handler(request)
        except BudgetExhausted as error:
            error.done_before = collect_partial_work(_own(request.messages, request.state))
            raise
        except StepFailed as failure:
            found = collect_partial_work(_own(request.messages, request.state))
            raise StepFailed(f"{failure}\nUntil then:\n{found}" if found else str(failure)) from None

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        try:
            return await handler(request)
        except BudgetExhausted as error:
            error.done_before = collect_partial_work(_own(request.state["messages"], request.state))
            raise


def _own(messages: Sequence[BaseMessage], state: Mapping[str, Any]) -> Sequence[BaseMessage]:
    return messages[state.get("given", 0) :]


def collect_partial_work(messages: Sequence[BaseMessage]) -> str:
    """Return an agent's words and its tools' results so far, these between the marks of the run.

    A summary that took the place of older ones is among them.
    """
    told = [message for message in messages if message.text and _tells(message)]
    each = PARTIAL_WORK_CHARACTERS // max(len(told), 1)
    lines = []
    for message in told:
        text = truncate_middle(message.text, each)
        lines.append(f"{message.name}: {fence_untrusted(text)}" if message.type == "tool" else text)
    return "\n".join(lines)


def _tells(message: BaseMessage) -> bool:
    is_summary = message.additional_kwargs.get("lc_source") == SUMMARY_SOURCE
    return is_summary or isinstance(message, ToolMessage | AIMessage)
