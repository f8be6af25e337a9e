"""Middleware: who goes round in circles is told, and then the step ends with what was found until then."""

from collections.abc import Sequence, Set
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool

from maniple.agents.fitting import grouped
from maniple.agents.observations import Observed
from maniple.agents.step_values import held
from maniple.agents.stuck_detector import Stuck, StuckDetector
from maniple.agents.task import StepFailed
from maniple.agents.wrapping import ModelHandler

_NUDGE = (
    "[From maniple, not from the user] You are going round in circles: {words}. Doing it once more will not "
    "change that. Try something else, such as other arguments, another tool or another source; or answer now "
    "with what you have found, and say what is missing. If this goes on, the step ends."
)


class _Watch:
    """What was seen of one step: it outlives the compaction of the conversation."""

    def __init__(self) -> None:
        self._detector: StuckDetector | None = None
        self._seen: set[str] = set()
        self._stuck: Stuck | None = None

    def after(self, messages: Sequence[AnyMessage], readers: Set[str]) -> Stuck | None:
        """Take in what is new of a conversation; `readers` are the tools that only read."""
        if self._detector is None:
            told = (one.text for one in messages if isinstance(one, HumanMessage))
            self._detector = StuckDetector(told)
        for answer, *results in grouped(messages):
            if not isinstance(answer, AIMessage) or not results or answer.id in self._seen:
                continue
            self._seen.add(str(answer.id))
            given = {one.tool_call_id: one for one in results if isinstance(one, ToolMessage)}
            calls = [(call, given[call["id"]]) for call in answer.tool_calls if call["id"] in given]
            self._stuck = self._detector.see(
                [
                    Observed(
                        call["name"],
                        call["args"],
                        _said(result),
                        is_error=result.status == "error",
                        only_reads=call["name"] in readers,
                    )
                    for call, result in calls
                ]
            )
        return self._stuck


_WATCH: ContextVar[_Watch | None] = ContextVar("maniple_stuck_watch", default=None)


def watched() -> AbstractContextManager[None]:
    """Watch what is done within as one step."""
    return held(_WATCH, _Watch())


class StuckDetection(AgentMiddleware[Any, Any]):
    """Says so to an agent that is stuck, with every prompt until it is not; raises `StepFailed` in the end.

    Nothing of it stays in the conversation. Outside of `watched` it judges by the conversation alone.
    """

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        # Those of the request may have been shortened, and then differ from what was seen of them before.
        stuck = (_WATCH.get() or _Watch()).after(request.state["messages"], _readers(request))
        if stuck is None:
            return await handler(request)
        if stuck.is_final:
            raise StepFailed(f"the agent was stuck: {stuck.words}")
        nudge = HumanMessage(_NUDGE.format(words=stuck.words))
        return await handler(request.override(messages=[*request.messages, nudge]))


def _readers(request: ModelRequest) -> frozenset[str]:
    """Return the names of tools that say of themselves, or whose servers say, that they only read."""
    tools = (tool for tool in request.tools if isinstance(tool, BaseTool))
    return frozenset(tool.name for tool in tools if (tool.metadata or {}).get("only_reads"))


def _said(result: ToolMessage) -> str:
    # Of pictures and other parts the data counts, too; of what was done in the browser, on which page.
    said = result.content if isinstance(result.content, str) else str(result.content)
    page = result.artifact.get("page") if isinstance(result.artifact, dict) else None
    return f"{said}\n[page {page}]" if page else said
