"""A report that no model is asked to mend: what of it does not hold is marked."""

from collections.abc import Callable
from functools import partial

from maniple.agents.report.draft import Draft
from maniple.agents.report.middleware import at_hand, check_for
from maniple.agents.report.uncited import UncitedDraft
from maniple.agents.task import Task


async def unmended(task: Task, locale: str) -> Callable[[], Draft | UncitedDraft]:
    """Return what checks the report that `task` asks for, and lists its sources as `locale` calls them."""
    check = await check_for(task)
    if not check.sources:
        return partial(UncitedDraft, check)
    return partial(Draft, check, locale=locale, at_hand=await at_hand(check, task))


async def checked(task: Task, report: str) -> str:
    """Return a report that is there already, marked, with its sources."""
    return await _through((await unmended(task, task.locale))(), report)


async def checked_addition(task: Task, text: str) -> str:
    """Return what is added behind a report and its sources, marked."""
    return await _through(UncitedDraft(await check_for(task)), text)


async def _through(draft: Draft | UncitedDraft, text: str) -> str:
    return await draft.feed(text) + await draft.end()
