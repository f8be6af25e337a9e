"""A run that a process left behind when it stopped or was killed, or could not record any more."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Protocol

from langchain_core.messages import HumanMessage

from maniple.errors import ManipleError, StoreError, failure_words
from maniple.events import StreamState, load_run_view
from maniple.runs.engine_config import EngineConfig
from maniple.runs.request import RunRequest
from maniple.runs.usage import usage_of_run
from maniple.runtime import Start
from maniple.store import RunChange, RunRecord, Store

MAX_STALLS = 20
"""So often a run may be taken over without having had an answer of a model in between.

It may be what stops the program. It may also be one of many, with kills in quick succession: so not too few.
"""


class RecoveryAbandoned(ManipleError):
    """A run was begun again and again, and never came to its end."""

    code = "recovered_too_often"


class RecoveryEngine(Protocol):
    """An engine that goes on with runs."""

    @property
    def rules(self) -> EngineConfig:
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


async def recover_run(engine: RecoveryEngine, store: Store, left: RunRecord) -> RunRecord | None:
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
        await engine.give_up(record, stream, RecoveryAbandoned(words))
        return None
    if was_answered:
        await engine.recover(record, "answer", StreamState())
    else:
        await engine.recover(record, "continue" if stream.has_started else "new", stream)
    return record


_LOG = logging.getLogger(__name__)


class RunUnrecoverable(ManipleError):
    """A run that was left behind cannot be read any more."""


async def recover_orphaned_runs(engine: RecoveryEngine, store: Store, kind: str) -> None:
    """Go on with every run of this `kind` that nobody drives, as far as the store allows it now."""
    for left in await store.runs.list_orphaned(kind, engine.driven):
        async with engine.deciding(left.thread_id):
            if left.run_id not in engine.driven:
                try:
                    await recover_or_fail(engine, store, left)
                except StoreError as error:
                    _LOG.warning("A run that was left behind has to wait: %s", error)


async def recover_or_fail(engine: RecoveryEngine, store: Store, left: RunRecord) -> None:
    """Go on with a run that nobody drives; one that cannot be read has failed.

    Raises `StoreError` for what may pass, such as a full disk: the run is left as it is.
    """
    try:
        await recover_run(engine, store, left)
    except Exception as error:
        # Whatever it is, it is not to keep all the others, the service, and its thread from going on.
        if isinstance(error, StoreError) and error.retryable:
            raise
        _LOG.exception("A run that was left behind cannot go on.")
        record = await store.runs.get(left.run_id)
        if record is not None and record.process in (left.process, store.process):
            words = f"It could not go on after the program had stopped: {failure_words(error)}"
            await _fail(engine, store, record, RunUnrecoverable(words))


async def _fail(engine: RecoveryEngine, store: Store, record: RunRecord, why: RunUnrecoverable) -> None:
    """End a run as failed, and its stream as the wire wants it if that can be read."""
    try:
        view = await load_run_view(store.events, record.run_id)
        thread = await store.threads.get(record.thread_id, None)
        # In the place of what cannot be read; the conversation itself is in the checkpoints.
        asked = RunRequest([HumanMessage(thread.title if thread is not None else "")])
        await engine.give_up(replace(record, request=asked.to_json()), view.stream, why)
    except Exception as error:
        if isinstance(error, StoreError) and error.retryable:
            raise
        _LOG.warning("Its stream cannot be closed: %s", failure_words(error))
        await store.runs.change(
            record.run_id, status="failed", ended_at=time.time(), error_code=why.code, error=str(why)
        )


@asynccontextmanager
async def watch_orphaned_runs(
    engine: RecoveryEngine, store: Store, kind: str, seconds: float
) -> AsyncIterator[None]:
    """Look for them every so many seconds: what a full disk left behind goes on when there is room again."""

    async def watch() -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await recover_orphaned_runs(engine, store, kind)
            except Exception as error:  # noqa: BLE001 - it looks again, whatever was wrong this time
                _LOG.warning("Whether runs were left behind is not known: %s", failure_words(error))

    task = asyncio.create_task(watch(), name="watch for runs left behind")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
