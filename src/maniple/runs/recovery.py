"""A run that a process left behind when it stopped or was killed, or could not record any more."""

import time
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Protocol

from maniple.errors import ManipleError
from maniple.events import Event, Told, read_event
from maniple.runs.request import RunRequest
from maniple.runs.rules import Rules
from maniple.runs.usage import used_by
from maniple.runtime import Start
from maniple.store import EventTable, RunChange, RunRecord, Store, stored

MAX_STALLS = 20
"""So often a run may be taken over without having had an answer of a model in between.

It may be what stops the program. It may also be one of many, with kills in quick succession: so not too few.
"""


class GaveUp(ManipleError):
    """A run was begun again and again, and never came to its end."""

    code = "recovered_too_often"


class Recovering(Protocol):
    """An engine that goes on with runs."""

    @property
    def rules(self) -> Rules:
        """How it drives them."""
        ...

    @property
    def driven(self) -> Collection[str]:
        """The ids of those that it drives."""
        ...

    def deciding(self, thread_id: str) -> AbstractAsyncContextManager[None]:
        """Keep others from deciding what happens on a thread."""
        ...

    async def recover(self, record: RunRecord, start: Start, told: Told) -> None:
        """Go on with a run; `told` is what its clients have heard."""
        ...

    async def give_up(self, record: RunRecord, told: Told, why: ManipleError) -> None:
        """End a run as failed."""
        ...


async def recover_run(engine: Recovering, store: Store, left: RunRecord) -> RunRecord | None:
    """Go on with a run that nobody drives; None if there is nothing to go on with."""
    record = await store.runs.claim(left)
    if record is None:
        return None  # another process was faster
    events = await told_by(store.events, record.run_id)
    told = Told.of(events)
    request = RunRequest.of(record)
    was_answered = bool(request.answers) and request.answered_after == len(events)
    used = used_by(events, engine.rules.prices)
    if told.ended and told.status is not None and not was_answered:
        # It had said all it had to say; only its row was not written any more.
        ended_at = None if told.status == "interrupted" else time.time()
        change: RunChange = {"status": told.status, "ended_at": ended_at, "usage": used}
        if told.failure is not None:
            change["error_code"], change["error"] = told.failure.code, told.failure.message
        await store.runs.change(record.run_id, **change)
        return None
    stalls = 0 if used.model_calls > record.usage.model_calls else request.stalls + 1
    kept = replace(request, stalls=stalls).to_json()
    record = await store.runs.change(record.run_id, usage=used, request=kept) or record
    if stalls > MAX_STALLS:
        words = f"The program stopped {stalls} times while this run was at the same point. Ask again."
        await engine.give_up(record, told, GaveUp(words))
        return None
    if was_answered:
        await engine.recover(record, "answer", Told())
    else:
        await engine.recover(record, "continue" if told.begun else "new", told)
    return record


async def told_by(events: EventTable, run_id: str) -> list[Event]:
    """Return what clients have heard of a run."""
    pages = [page async for page in stored(events, run_id)]
    return [read_event(record.type, record.data) for page in pages for record in page]
