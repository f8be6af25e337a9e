"""Middleware of the reporter: it is shown its sources, and what it writes is checked on them."""

from collections.abc import Callable
from functools import partial
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import HumanMessage

from maniple.agents.fencing import between_marks
from maniple.agents.report.draft import Draft
from maniple.agents.report.model import CheckedModel
from maniple.agents.report.repair import Repair
from maniple.agents.report.uncited import UncitedDraft
from maniple.agents.task import Task, current_task
from maniple.agents.wrapping import ModelHandler
from maniple.evidence import MemoryEvidence
from maniple.evidence.check import SourceCheck
from maniple.evidence.source_list import listed
from maniple.tools.evidence import current_evidence

MOST_LISTED = 40
_READ_HERE = ("researcher", "browser")
"""Whose results are taken from the web: what they quote must stand there."""


class CheckedReport(AgentMiddleware[Any, Any]):
    """Ask for the report with the sources at hand, and let only checked words out. Must be the innermost."""

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        task = current_task()
        check = await check_for(task)
        messages = [*request.messages]
        draft: Callable[[], Draft | UncitedDraft] = partial(UncitedDraft, check)
        if check.sources:
            draft = partial(Draft, check, Repair(request.model, check), locale=task.locale)
            messages.insert(-1, HumanMessage(await _shown(check, task)))
        model = CheckedModel(model=request.model, draft=draft)
        return await handler(request.override(model=model, messages=messages))


async def check_for(task: Task) -> SourceCheck:
    """Return the check of the report that `task` asks for."""
    said = (task.request, task.caller, *task.said)
    given = [result.text for result in task.results if result.agent not in _READ_HERE]
    researched = any(result.agent in _READ_HERE for result in task.results)
    evidence = current_evidence()
    record = MemoryEvidence() if evidence is None else evidence
    return await SourceCheck.of(record, said, given, researched=researched)


async def at_hand(check: SourceCheck, task: Task) -> list[int]:
    """Return the sources that the results of `task` name, by number."""
    numbers: set[int] = set()
    for result in task.results:
        numbers |= await check.cited(result.text)
    return sorted(numbers)


async def _shown(check: SourceCheck, task: Task) -> str:
    """Return the sources as the reporter sees them: those that the results name, then pages, then finds."""
    named = await at_hand(check, task)
    order = sorted(check.sources.values(), key=lambda one: (one.number not in named, one.kind != "page"))
    return f"The sources, to be cited by number:\n{between_marks(listed(order[:MOST_LISTED]))}"
