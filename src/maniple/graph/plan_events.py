"""Sends the plan to the clients of a run between two steps of the graph: when a change of it is taken."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from langchain_core.callbacks import adispatch_custom_event

from maniple.graph.plan import PlanProgress
from maniple.graph.state import State, progress_of
from maniple.scope.inbox import Inbox
from maniple.scope.run_scope import run_scope
from maniple.types import PLAN_EVENT, Worker

_LOG = logging.getLogger(__name__)
_UNSHOWN = frozenset({"result", "note"})


def as_shown(progress: PlanProgress) -> dict[str, object]:
    """Return a plan as plain data, without the texts of its steps that no client is shown."""
    plan = progress.to_state()
    plan["steps"] = [
        {name: value for name, value in step.items() if name not in _UNSHOWN} for step in plan["steps"]
    ]
    return plan


async def send_plan(plan: dict[str, object], step_id: int = 0, *, begins: bool = False) -> None:
    """Send a plan; with a `step_id`, also that an attempt of this step begins or ends."""
    await adispatch_custom_event(PLAN_EVENT, {"plan": plan, "step": step_id, "begins": begins})


@asynccontextmanager
async def show_changes(state: State, members: Sequence[Worker]) -> AsyncGenerator[None]:
    """Send the plan of `state` with the changes that are taken while the body works, and before."""
    inbox, before = run_scope().inbox, progress_of(state)

    async def show() -> None:
        if before is not None and inbox.is_open and inbox.has_new(before.changes):
            progress = progress_of(state, inbox.changes, members) or before
            await send_plan(as_shown(progress))

    async with follow_inbox(inbox, show):
        yield


@asynccontextmanager
async def follow_inbox(inbox: Inbox, show: Callable[[], Awaitable[None]]) -> AsyncGenerator[None]:
    """Call `show` now and at each change of the inbox while the body works.

    If it fails, the next plan of the graph has the change.
    """
    if not inbox.is_reachable:
        yield
        return

    async def follow() -> None:
        while True:
            changed = inbox.changed()
            await show()
            await asyncio.wait({changed})

    task = asyncio.create_task(follow(), name="plan changes")
    task.add_done_callback(_log_failure)
    try:
        yield
    finally:
        # Not awaited: the step that ends here and those beside it must see its end at the same moment.
        task.cancel()


def _log_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _LOG.warning("A change of the plan could not be shown: %s", error)
