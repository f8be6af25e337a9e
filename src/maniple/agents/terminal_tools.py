"""Middleware: a tool whose `metadata` says `is_terminal` ends its agent's step with its result."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from maniple.agents.call_results import SAID_BY
from maniple.agents.fencing import between_marks
from maniple.agents.wrapping import ModelHandler
from maniple.text import without_thoughts

_BARE = ("", "STEP FAILED:")
"""An end whose words the agent has said before."""


class TerminalTools(AgentMiddleware[Any, Any]):
    """Takes the result of a terminal tool for the agent's answer, unless the call failed.

    LangChain's `return_direct` ends no step beside another call, and ends it when the arguments were wrong.
    """

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        terminal = {
            tool.name: tool
            for tool in request.tools
            if not isinstance(tool, dict) and (tool.metadata or {}).get("is_terminal")
        }
        for result in _latest(request.messages) if terminal else ():
            tool = terminal.get(result.name or "")
            if tool is not None and result.status != "error":
                ours = SAID_BY in result.additional_kwargs or SAID_BY in (tool.metadata or {})
                words = result.text
                if ours and words in _BARE:
                    words = f"{words} {_last_words(request.messages)}".strip()
                answer = AIMessage(words if ours else between_marks(words))
                return ModelResponse(result=[answer])
        return await handler(request)


def _last_words(messages: Sequence[AnyMessage]) -> str:
    """Return what the agent said last, beside a call or before it; "" if it said nothing."""
    said = (without_thoughts(one.text) for one in reversed(messages) if isinstance(one, AIMessage))
    return next((words for words in said if words), "")


def _latest(messages: Sequence[AnyMessage]) -> Iterator[ToolMessage]:
    """Yield the results of the last answer's calls, the last one first."""
    results = takewhile(lambda message: not isinstance(message, AIMessage), reversed(messages))
    return (one for one in results if isinstance(one, ToolMessage))
