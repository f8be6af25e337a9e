"""The limits of an agent in one step: model calls, tool calls, and seconds per tool call."""

import asyncio
import functools
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr, ToolCallRequest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import StructuredTool

from maniple.agents.middleware.base import ModelHandler, ToolAnswer, ToolHandler
from maniple.agents.middleware.call_order import preceding_calls
from maniple.agents.middleware.call_records import AUTHOR_KEY, EDIT_KEY
from maniple.agents.middleware.continuation import register_call, save_messages
from maniple.agents.middleware.fencing import fence_untrusted
from maniple.agents.task import PARTIAL_WORK, StepFailed, truncate_middle
from maniple.errors import BudgetExhausted, ModelError, ToolFailure
from maniple.llms.streams import limit_calls
from maniple.third_party import in_thread
from maniple.types import SUMMARY_SOURCE

PARTIAL_WORK_CHARACTERS = 6_000
"""Of the record of a step that was cut off."""


@dataclass(frozen=True, slots=True)
class StepLimits:
    """The limits of one step. Reaching one fails the call or the step, never the run."""

    model_calls: int = 25
    tool_calls: int = 100
    tool_seconds: float = 600
    """The time limit of a call, unless the tool's metadata has `timeout_seconds`."""


class StepState(AgentState[Any]):
    """An agent's messages, and the numbers of answers and tool results that compaction removed from them."""

    given: NotRequired[int]
    """The number of messages before the step began; they may contain answers to earlier requests."""
    answers_left_out: NotRequired[Annotated[int, PrivateStateAttr]]
    calls_left_out: NotRequired[Annotated[int, PrivateStateAttr]]


def count_answers(state: Mapping[str, Any]) -> int:
    """Return the number of the model's answers in this step, including those removed by compaction."""
    own = state["messages"][state.get("given", 0) :]
    present = sum(isinstance(message, AIMessage) for message in own)
    return present + state.get("answers_left_out", 0)


class ModelCallLimit(AgentMiddleware[Any, Any]):
    """Fails the step after `most` answers of the model.

    LangChain's own middleware counts in two more nodes for each call, each with a checkpoint. Here the count
    comes from the answers in the agent's state.
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
    """Return the number of tool results of this step, including those removed by compaction."""
    ended = sum(isinstance(message, ToolMessage) for message in state["messages"])
    return ended + state.get("calls_left_out", 0)


class ToolCallLimit(AgentMiddleware[Any, Any]):
    """Refuses calls after the first `most` with a message to the model.

    LangChain's own middleware counts in one more node after each answer. Here the count comes from the
    results in the agent's state.
    """

    state_schema = StepState

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        # One more than may run: its refusal says so to the model. The answer ends before any other.
        with limit_calls(max(self._most - count_tool_results(request.state), 0) + 1):
            return await handler(request)

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        if count_tool_results(request.state) + len(preceding_calls(request)) < self._most:
            return await handler(request)
        call = request.tool_call
        text = _BEYOND.format(most=self._most)
        refusal = ToolMessage(text, tool_call_id=call["id"], name=call["name"], status="error")
        refusal.additional_kwargs[AUTHOR_KEY] = "maniple"
        return refusal


TIMEOUT_KEY = "timeout_seconds"
"""The key in a tool's `metadata`. `None` means no limit, for tools with their own, such as the sandbox."""


class ToolTimeouts(AgentMiddleware[Any, Any]):
    """Cancels a call after the seconds in its tool's `metadata`, else after `default_seconds`.

    The call then raises `ToolFailure`. A tool that blocks in a thread keeps running there, because Python
    cannot end a thread.
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
            return await handler(request.override(tool=_with_time_limit(tool, seconds)))
        async with _time_limit(seconds):
            return await handler(request)


def _with_time_limit(tool: StructuredTool, seconds: float) -> StructuredTool:
    """Return the tool with the time limit inside, so that LangChain reports a timeout as a failed call."""
    run, blocking = tool.coroutine, tool.func
    if run is None and blocking is not None:
        run = in_thread(blocking)
    if run is None:
        return tool
    unbounded = run

    @functools.wraps(unbounded)
    async def bounded(*args: Any, **kwargs: Any) -> Any:
        async with _time_limit(seconds):
            return await unbounded(*args, **kwargs)

    return tool.model_copy(update={"coroutine": bounded})


@asynccontextmanager
async def _time_limit(seconds: float) -> AsyncGenerator[None]:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise  # raised by the tool itself
        message = f"It gave no result within {seconds:g} seconds and was stopped."
        raise ToolFailure(f"{message} What it did until then is unknown.") from None


class PartialWork(AgentMiddleware[Any, Any]):
    """Adds what the agent has done so far to `BudgetExhausted`, `ModelError` and `StepFailed`."""

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        try:
            return await handler(request)
        except (BudgetExhausted, ModelError) as error:
            own = _step_messages(request.messages, request.state)
            error.done_before = collect_partial_work(own)
            save_messages(error, own)
            raise
        except StepFailed as failure:
            if PARTIAL_WORK in str(failure):  # it has the member's own words
                raise
            found = collect_partial_work(_step_messages(request.messages, request.state))
            reason = f"{failure}{PARTIAL_WORK}{found}" if found else str(failure)
            raise StepFailed(reason, is_final=failure.is_final) from None

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        register_call(request.tool_call["id"] or "")
        try:
            return await handler(request)
        except (BudgetExhausted, ModelError) as error:
            own = _step_messages(request.state["messages"], request.state)
            # A call whose own agent has no model, such as `browse`, had done something before.
            text = f"{_CUT_OFF}{PARTIAL_WORK}{error.done_before}" if error.done_before else ""
            error.done_before = collect_partial_work(own)
            save_messages(error, own, {request.tool_call["id"] or "": text} if text else {})
            raise


_CUT_OFF = "This call was cut off, because its model gave no answer."


def _step_messages(messages: Sequence[BaseMessage], state: Mapping[str, Any]) -> Sequence[BaseMessage]:
    return messages[state.get("given", 0) :]


def collect_partial_work(messages: Sequence[BaseMessage]) -> str:
    """Return an agent's texts and its fenced tool results so far, with the summary of compacted messages.

    All together have about `RESULT_CHARACTERS`.
    """
    reportable = [message for message in messages if message.text and _is_reportable(message)]
    each = PARTIAL_WORK_CHARACTERS // max(len(reportable), 1)
    lines: list[str] = []
    for message in reportable:
        text = truncate_middle(message.text, each)
        if edit := message.additional_kwargs.get(EDIT_KEY):
            lines.append(edit)
        lines.append(f"{message.name}: {fence_untrusted(text)}" if message.type == "tool" else text)
    return "\n".join(lines)


def _is_reportable(message: BaseMessage) -> bool:
    is_summary = message.additional_kwargs.get("lc_source") == SUMMARY_SOURCE
    return is_summary or isinstance(message, ToolMessage | AIMessage)
