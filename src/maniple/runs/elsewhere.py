"""Runs that other processes of this machine drive, on the same store."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from maniple.runs.failures import ThreadBusy
from maniple.store import EventRecord, Store, read_event_pages

LOOKING_SECONDS = 0.2
"""How often is looked what another process has come to: nothing tells of it."""


async def refuse_elsewhere(store: Store, thread_id: str) -> None:
    """Raise `ThreadBusy` when another living process works on the thread, or waits for it."""
    if await store.runs.list_in_other_processes(thread_id):
        raise ThreadBusy("Another program of this machine works on this thread. Wait for its end.")


async def follow_stored(store: Store, run_id: str, after: int) -> AsyncIterator[Sequence[EventRecord]]:
    """Yield what is stored of a run after number `after`, and what another process adds to it."""
    number, is_driven = after, True
    while is_driven:
        # Asked before its events are read: of a run that is over all of them are there.
        is_driven = await _is_driven(store, run_id)
        async for page in read_event_pages(store.events, run_id, number):
            yield page
            number = page[-1].number
        if is_driven:
            await asyncio.sleep(LOOKING_SECONDS)


async def _is_driven(store: Store, run_id: str) -> bool:
    record = await store.runs.get(run_id)
    if record is None or not record.is_unfinished:
        return False
    return any(one.run_id == run_id for one in await store.runs.list_in_other_processes(record.thread_id))
