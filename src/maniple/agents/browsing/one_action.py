"""Middleware: of the calls that one answer makes, none is done after one that changed the page."""

from collections import OrderedDict
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, ToolMessage

from maniple.agents.middleware.base import ToolAnswer, ToolHandler
from maniple.agents.middleware.call_order import preceding_calls
from maniple.agents.middleware.call_records import AUTHOR_KEY
from maniple.tools.browser_use import NAME

_CHANGED = "Not done: the page has changed since this was decided on"
_FAILED = "Not done: the action before it failed"
_UNSEEN = "Not done: nobody has seen yet what came of the action before it"
_ADVICE = "Look at what the browser shows now, and decide again; one action at a time."
_WORDS = frozenset({"terminate", "ask_human"})
"""What says how things are: never decided on before one has looked."""
_MOST_ANSWERS = 1_000


class OneAction(AgentMiddleware[Any, Any]):
    """Refuses what was decided on an older page; inside of what keeps the calls in order.

    An answer that acts cannot say how it ended or ask, either: it has not seen what came of its action.
    """

    def __init__(self) -> None:
        super().__init__()
        self._spoiled: OrderedDict[str, str] = OrderedDict()

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        name = request.tool_call["name"]
        if name in _WORDS and _acts_before(request):
            return _refusal(request, _UNSEEN)
        if name != NAME:
            return await handler(request)
        answer_id = _answer_of(request)
        if why := self._spoiled.get(answer_id):
            return _refusal(request, why)
        result = await handler(request)
        if isinstance(result, ToolMessage) and (why := _spoils(result)):
            self._spoiled[answer_id] = why
            if len(self._spoiled) > _MOST_ANSWERS:
                self._spoiled.popitem(last=False)
        return result


def _refusal(request: ToolCallRequest, why: str) -> ToolMessage:
    call = request.tool_call
    refusal = ToolMessage(f"{why}. {_ADVICE}", tool_call_id=call["id"], name=call["name"], status="error")
    refusal.additional_kwargs[AUTHOR_KEY] = "maniple"
    return refusal


def _acts_before(request: ToolCallRequest) -> bool:
    """Say whether the answer that makes a call does something in the browser before it."""
    before = set(preceding_calls(request))
    answers = [one for one in request.state["messages"] if isinstance(one, AIMessage)]
    return any(call["name"] == NAME and call["id"] in before for one in answers for call in one.tool_calls)


def _spoils(result: ToolMessage) -> str:
    """Return why nothing that was decided on with this call is to be done after it; "" if it may be."""
    if result.status == "error":
        return _FAILED
    artifact = result.artifact
    return _CHANGED if not isinstance(artifact, dict) or artifact.get("changed", True) else ""


def _answer_of(request: ToolCallRequest) -> str:
    """Return the id of the answer that makes a call."""
    messages = reversed(request.state["messages"])
    return next((str(one.id) for one in messages if isinstance(one, AIMessage)), "")
