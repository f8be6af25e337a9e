"""A run that a process left behind when it stopped or was killed, or could not record any more."""

import time
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Protocol

from maniple.errors import ManipleError
from maniple.events import StreamState, load_run_view
from maniple.runs.request import RunRequest
from maniple.runs.rules import Rules
from maniple.runs.usage import usage_of_run
from maniple.runtime import Start
from maniple.store import RunChange, RunRecord, Store

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

    async def recover(self, record: RunRecord, start: Start, stream: StreamState) -> None:
        """Continue a run; `stream` is the state of its stream so far."""
        ...

    async def give_up(self, record: RunRecord, stream: StreamState, why: ManipleError) -> None:
        """End a run as failed."""
        ...


async def recover_run(engine: Recovering, store: Store, left: RunRecord) -> RunRecord | None:
    """Go on with a run that nobody drives; None if there is nothing to go on with."""
    record = await store.runs.claim(left)
    if record is None:
        return None  # another process was faster
    view = await load_run_view(store.events, record.run_id)
    stream = view.stream
    request = RunRequest.of(record)
    was_answered = bool(request.answers) and request.answered_after == view.event_number
    used = usage_of_run(view.usage, engine.rules.prices)
    if stream.has_ended and stream.status is not None and not was_answered:
        # It had said all it had to say; only its row was not written any more.
        ended_at = None if stream.status == "interrupted" else time.time()
        change: RunChange = {"status": stream.status, "ended_at": ended_at, "usage": used}
        if stream.failure is not None:
            change["error_code"], change["error"] = stream.failure.code, stream.failure.message
        await store.runs.change(record.run_id, **change)
        return None
    stalls = 0 if used.model_calls > record.usage.model_calls else request.stalls + 1
    kept = replace(request, stalls=stalls).to_json()
    record = await store.runs.change(record.run_id, usage=used, request=kept) or record
    if stalls > MAX_STALLS:
        words = f"The program stopped {stalls} times while this run was at the same point. Ask again."
        await engine.give_up(record, stream, GaveUp(words))
        return None
    if was_answered:
        await engine.recover(record, "answer", StreamState())
    else:
        await engine.recover(record, "continue" if stream.has_started else "new", stream)
    return record
