"""Where runs work: which one may work now, and what follows it on its thread."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from maniple.runs.active_run import ActiveRun, RunServices
from maniple.runs.scheduling import FairSemaphore, Slot, ThreadLocks
from maniple.runs.steering import make_next_runs
from maniple.runs.turn import Start
from maniple.store import RunChange, RunRecord

_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.005, 1.0
"""The first and the longest pause between two checks whether the previous run has ended."""
Begin = Callable[[], Awaitable[bool]]
"""Starts a run; returns False if another run still uses the thread."""


class TurnScheduler(Protocol):
    """Gives each run a turn on its thread and a slot to work in."""

    def enter(self, active: ActiveRun, start: Start, begin: Begin) -> AbstractAsyncContextManager[Slot]:
        """Wait until the run may work and `begin` has started it, and hold its slot."""
        ...

    async def end(self, active: ActiveRun, change: RunChange) -> RunRecord | None:
        """Store the end of a run that has left its slot, and what its unanswered messages become.

        Returns None if the run was deleted. `active.next_runs` become the runs that its engine has to start.
        """
        ...


@dataclass(slots=True, eq=False)
class LocalTurnScheduler:
    """Schedules the runs of one process: one at a time per thread, owners in turn."""

    services: RunServices
    slots: FairSemaphore
    _order: ThreadLocks = field(default_factory=ThreadLocks)
    _turns: ThreadLocks = field(default_factory=ThreadLocks)

    @asynccontextmanager
    async def enter(self, active: ActiveRun, start: Start, begin: Begin) -> AsyncGenerator[Slot]:
        """Wait for the thread, for a slot, and for other processes (see `TurnScheduler`)."""
        record, pause = active.record, _FIRST_PAUSE_SECONDS
        async with AsyncExitStack() as stack:
            if start != "answer":
                # An answer goes first: the other runs of the thread wait for the interrupted run to end.
                await stack.enter_async_context(self._order.acquire(record.thread_id))
            while True:
                async with self._turns.acquire(record.thread_id), self.slots.hold(record.owner) as slot:
                    if await begin():
                        yield slot
                        return
                await asyncio.sleep(pause)
                pause = min(2 * pause, _MAX_PAUSE_SECONDS)

    async def end(self, active: ActiveRun, change: RunChange) -> RunRecord | None:
        """Store the end of a run (see `TurnScheduler`)."""
        record, store, status = active.record, self.services.store, active.status or "failed"
        following = make_next_runs(self.services, record, active.request, active.inbox.messages, status)
        new = [one for one in following if await store.runs.get(one.run_id) is None]
        active.next_runs = [await store.runs.add(one) for one in new]
        # A rollback may need the checkpoints of a cancelled run, so the next run that ends prunes them.
        needs_checkpoints = status in ("interrupted", "cancelled")
        if not needs_checkpoints and not self._turns.is_locked(record.thread_id):
            async with self._turns.acquire(record.thread_id):
                # Before the end is stored: after that another process may work on the thread.
                await store.checkpoints.prune(record.thread_id)
        return await store.runs.change(record.run_id, **change)
