"""Middleware: bound how many calls of tools an agent may make for one step."""

from collections.abc import Mapping
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage

from maniple.agents.call_limit import Answers
from maniple.agents.call_order import calls_before
from maniple.agents.call_results import SAID_BY
from maniple.agents.wrapping import ToolAnswer, ToolHandler

_BEYOND = (
    "Not run: the limit of {most} tool calls for one step was reached. Answer now with what you have found, "
    "and say what is missing."
)


def calls_in(state: Mapping[str, Any]) -> int:
    """Return how many calls of this step have their results, those of shortened records included."""
    ended = sum(isinstance(message, ToolMessage) for message in state["messages"])
    return ended + state.get("calls_left_out", 0)


class ToolCallLimit(AgentMiddleware[Any, Any]):
    """Tells the model so instead of running a call beyond the first `most`.

    LangChain's own middleware counts in a node of the graph after each answer; the results are there anyway.
    """

    state_schema = Answers

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        if calls_in(request.state) + len(calls_before(request)) < self._most:
            return await handler(request)
        call = request.tool_call
        words = _BEYOND.format(most=self._most)
        refusal = ToolMessage(words, tool_call_id=call["id"], name=call["name"], status="error")
        refusal.additional_kwargs[SAID_BY] = "maniple"
        return refusal
