"""Keep what an agent has found when the budget ends in the middle of its step."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.types import Command

from maniple.agents.fencing import between_marks
from maniple.agents.task import RESULT_CHARACTERS, shortened
from maniple.errors import BudgetExhausted


class PartialWork(AgentMiddleware[Any, Any]):
    """Give `BudgetExhausted` what the agent said and its tools returned before it."""

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        try:
            return await handler(request)
        except BudgetExhausted as error:
            error.done_before = found_in(request.messages)
            raise

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        try:
            return await handler(request)
        except BudgetExhausted as error:
            error.done_before = found_in(request.state["messages"])
            raise


def found_in(messages: Sequence[BaseMessage]) -> str:
    """Return an agent's words and its tools' results so far, these between the marks of the run."""
    told = [message for message in messages if isinstance(message, ToolMessage | AIMessage) and message.text]
    each = RESULT_CHARACTERS // max(len(told), 1)
    lines = []
    for message in told:
        text = shortened(message.text, each)
        lines.append(f"{message.name}: {between_marks(text)}" if message.type == "tool" else text)
    return "\n".join(lines)
