"""Keep what an agent has found when its step ends in the middle."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from maniple.agents.fencing import between_marks
from maniple.agents.task import RESULT_CHARACTERS, StepFailed, shortened
from maniple.agents.wrapping import ModelHandler, ToolAnswer, ToolHandler
from maniple.errors import BudgetExhausted
from maniple.types import SUMMARY_SOURCE


class PartialWork(AgentMiddleware[Any, Any]):
    """Give `BudgetExhausted` and `StepFailed` what the agent said and its tools returned before it."""

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        try:
            return await handler(request)
        except BudgetExhausted as error:
            error.done_before = found_in(_own(request.messages, request.state))
            raise
        except StepFailed as failure:
            found = found_in(_own(request.messages, request.state))
            raise StepFailed(f"{failure}\nUntil then:\n{found}" if found else str(failure)) from None

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        try:
            return await handler(request)
        except BudgetExhausted as error:
            error.done_before = found_in(_own(request.state["messages"], request.state))
            raise


def _own(messages: Sequence[BaseMessage], state: Mapping[str, Any]) -> Sequence[BaseMessage]:
    return messages[state.get("given", 0) :]


def found_in(messages: Sequence[BaseMessage]) -> str:
    """Return an agent's words and its tools' results so far, these between the marks of the run.

    A summary that took the place of older ones is among them.
    """
    told = [message for message in messages if message.text and _tells(message)]
    each = RESULT_CHARACTERS // max(len(told), 1)
    lines = []
    for message in told:
        text = shortened(message.text, each)
        lines.append(f"{message.name}: {between_marks(text)}" if message.type == "tool" else text)
    return "\n".join(lines)


def _tells(message: BaseMessage) -> bool:
    is_summary = message.additional_kwargs.get("lc_source") == SUMMARY_SOURCE
    return is_summary or isinstance(message, ToolMessage | AIMessage)
