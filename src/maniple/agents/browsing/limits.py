"""Middleware: how far one call of the browser may go."""

from itertools import takewhile
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import ToolMessage

from maniple.agents.browsing.course import COURSE
from maniple.agents.middleware.base import ModelHandler
from maniple.agents.middleware.limits import count_answers
from maniple.agents.task import StepFailed

TOO_MANY_FAILURES = "Too many consecutive failures"
MOST_REACHED = "Max iterations reached"
"""The whole call is over then, and no other plan helps."""


class BrowsingLimits(AgentMiddleware[Any, Any]):
    """Ends the call after `max_iterations` answers, and a phase after `max_failures` failures in a row."""

    def __init__(self, max_iterations: int, max_failures: int) -> None:
        super().__init__()
        self._max_iterations = max_iterations
        self._max_failures = max_failures

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        course = COURSE.get()
        before = course.offset if course is not None else 0
        if before + count_answers(request.state) >= self._max_iterations:
            raise StepFailed(MOST_REACHED)
        results = (one for one in reversed(request.state["messages"]) if isinstance(one, ToolMessage))
        failed = list(takewhile(lambda one: one.status == "error", results))
        if len({_answer(request, one) for one in failed}) >= self._max_failures:
            # What follows the first line tells the model what the tool takes.
            words = failed[0].text.strip().partition("\n")[0]
            raise StepFailed(f"{TOO_MANY_FAILURES}: {words}")
        return await handler(request)


def _answer(request: ModelRequest, result: ToolMessage) -> str:
    """Return the id of the answer whose call a result is of: what it made beside a failed call is one."""
    for message in request.state["messages"]:
        calls = getattr(message, "tool_calls", None) or ()
        if any(call["id"] == result.tool_call_id for call in calls):
            return str(message.id)
    return result.tool_call_id
