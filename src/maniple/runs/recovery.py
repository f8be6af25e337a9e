"""Recovers orphaned runs: those whose process stopped, was killed, or could not record their events."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from langchain_core.messages import HumanMessage

from maniple.background import background_task
from maniple.errors import ManipleError, StoreError, describe_error
from maniple.events import StreamState, load_run_view
from maniple.runs.request import RunRequest
from maniple.runs.run_tasks import RunTasks, StoredRun
from maniple.runs.stored_inputs import read_inputs
from maniple.runs.usage import usage_of_run
from maniple.scope.inbox import Inbox
from maniple.scope.inputs import Retry
from maniple.store import RunChange, RunRecord, RunUsage, Store

_LOG = logging.getLogger(__name__)
MAX_STALLS = 20
"""The number of times that a run may be recovered without a new model answer in between.

The run itself may crash the program. The limit is this high because many runs share a process, which may be
killed several times in quick succession.
"""


MAX_REPEATS = 2
"""How often another process may go on with a run when one has died in a model call.

What kills a process there is mostly the answer itself, such as one with thousands of tool calls. It must not
go from one process of the queue to the next.
"""


class RecoveryAbandoned(ManipleError):
    """A run was recovered too often without progress."""

    code = "recovered_too_often"


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How a run stands that was claimed before: whether it `has_moved` to a new checkpoint since then.

    `repeats` is how often in a row a process that worked on it has died at this checkpoint.
    """

    has_moved: bool
    repeats: int


class RunUnrecoverable(ManipleError):
    """The stored data of an orphaned run cannot be read."""


async def recover_run(tasks: RunTasks, orphan: RunRecord) -> RunRecord | None:
    """Continue an orphaned run and return it; None if it has ended or another process has claimed it."""
    record = await tasks.store.runs.claim(orphan)
    if record is None:
        return None  # another process claimed it
    return await continue_run(tasks, record, was_begun=True)


async def continue_run(
    tasks: RunTasks, record: RunRecord, *, was_begun: bool, progress: RunProgress | None = None
) -> RunRecord | None:
    """Go on with a stored run that this process has claimed, and return it; None if it has ended.

    `was_begun` says whether another process had begun it and did not end it: that counts as a stall.
    Without its `progress`, a new model answer counts as such.
    """
    store = tasks.store
    view = await load_run_view(store.events, record.run_id)
    stream = view.stream
    known = StoredRun(await read_inputs(store.inputs, record.run_id), view.event_number)
    inbox = Inbox(known.received)
    segment = inbox.segment
    begins_segment = segment is not None and segment.after == view.event_number
    used = usage_of_run(view.usage, tasks.services.config.prices)
    if stream.has_ended and stream.status is not None and not begins_segment:
        if stream.status == "interrupted" and inbox.has_new_cancel:
            await tasks.resume(record, "new", known=known)
            return record
        await _store_shown_end(tasks, record, stream, used)
        return None
    is_waiting = record.waiting_for is not None
    stalls = record.stalls + (was_begun and not is_waiting)
    is_further = used.model_calls > record.usage.model_calls
    if is_further if progress is None else progress.has_moved:
        stalls = 0
    if (used, stalls) != (record.usage, record.stalls):
        record = await store.runs.change(record.run_id, usage=used, stalls=stalls) or record
    if (why := _find_abandon_reason(stalls, progress, stream)) is not None:
        await tasks.fail(record, stream, why)
        return None
    if begins_segment:
        await tasks.resume(record, "retry" if isinstance(segment, Retry) else "answer", known=known)
    else:
        await tasks.resume(record, "continue" if stream.has_started else "new", stream, known)
    return record


def _find_abandon_reason(
    stalls: int, progress: RunProgress | None, stream: StreamState
) -> RecoveryAbandoned | None:
    """Return why a run is not continued any more; None if it is."""
    if progress is not None and progress.repeats > MAX_REPEATS and stream.awaits_model:
        return RecoveryAbandoned(
            f"Each of {progress.repeats} programs stopped in the same model call of this run. Its answer "
            "may be too large: ask for less, or give the workers more memory, and retry the run."
        )
    if stalls > MAX_STALLS:
        return RecoveryAbandoned(
            f"The program stopped {stalls} times at the same point of this run. Send the request again."
        )
    return None


async def _store_shown_end(tasks: RunTasks, record: RunRecord, stream: StreamState, used: RunUsage) -> None:
    """Store the end of a run of which all events are stored: only its row lacks it."""
    assert stream.status is not None
    ended_at = None if stream.status == "interrupted" else time.time()
    change: RunChange = {"status": stream.status, "ended_at": ended_at, "usage": used}
    if stream.failure is not None:
        change["error_code"], change["error"] = stream.failure.code, stream.failure.message
    active = await tasks.prepare(record)
    active.resume_after(stream)
    await tasks.driver.scheduler.end(active, change)
    for next_run in active.next_runs:
        await tasks.resume(next_run, "new")


async def recover_orphaned_runs(tasks: RunTasks, kind: str) -> None:
    """Recover every orphaned run of this `kind`.

    After a `StoreError` the run stays orphaned and is tried again. While the store takes no writes none is
    begun: each would end at its first write.
    """
    orphans = await tasks.store.runs.list_orphaned(kind, tasks.active)
    if not orphans or not await _takes_writes(tasks.store):
        return
    for orphan in orphans:
        async with tasks.thread_locks.acquire(orphan.thread_id):
            if orphan.run_id not in tasks.active:
                try:
                    await recover_or_fail(tasks, orphan)
                except StoreError as error:
                    _LOG.warning("An orphaned run could not be recovered yet: %s", error)


async def _takes_writes(store: Store) -> bool:
    try:
        await store.probe()
    except StoreError as error:
        _LOG.warning("Orphaned runs are not recovered yet: %s", error)
        return False
    return True


async def recover_or_fail(tasks: RunTasks, orphan: RunRecord) -> None:
    """Recover an orphaned run; fail it if its data cannot be read.

    Raises a retryable `StoreError`, such as a full disk; the run then stays orphaned.
    """
    async with _failing(tasks, orphan):
        await recover_run(tasks, orphan)


async def continue_or_fail(
    tasks: RunTasks, record: RunRecord, *, was_begun: bool, progress: RunProgress | None = None
) -> None:
    """Go on with a claimed run (see `continue_run`); fail it if its data cannot be read.

    Raises a retryable `StoreError`; the run then stays as it is.
    """
    async with _failing(tasks, record):
        await continue_run(tasks, record, was_begun=was_begun, progress=progress)


@asynccontextmanager
async def _failing(tasks: RunTasks, run: RunRecord) -> AsyncGenerator[None]:
    """Fail a run that cannot go on. No error of one run may block other runs, the service, or the thread."""
    try:
        yield
    except Exception as error:
        if isinstance(error, StoreError) and error.retryable:
            raise
        _LOG.exception("An orphaned run cannot be recovered.")
        record = await tasks.store.runs.get(run.run_id)
        if record is not None and record.process in (run.process, tasks.store.process):
            message = f"The run could not continue after the program had stopped: {describe_error(error)}"
            await _fail(tasks, record, RunUnrecoverable(message))


async def _fail(tasks: RunTasks, record: RunRecord, why: RunUnrecoverable) -> None:
    """End a run as failed, with closing events if its stream can be read."""
    try:
        view = await load_run_view(tasks.store.events, record.run_id)
        thread = await tasks.store.threads.get(record.thread_id, None)
        # Replaces the unreadable request. The conversation itself is in the checkpoints.
        request = RunRequest([HumanMessage(thread.title if thread is not None else "")])
        await tasks.fail(replace(record, request=request.to_json()), view.stream, why)
    except Exception as error:
        if isinstance(error, StoreError) and error.retryable:
            raise
        _LOG.warning("The stream of the run cannot be closed: %s", describe_error(error))
        await tasks.store.runs.change(
            record.run_id, status="failed", ended_at=time.time(), error_code=why.code, error=str(why)
        )


@asynccontextmanager
async def watch_orphaned_runs(tasks: RunTasks, kind: str) -> AsyncGenerator[None]:
    """Recover orphaned runs now and then, for example when a full disk has space again."""

    async def watch() -> None:
        while True:
            await asyncio.sleep(tasks.services.config.watch_seconds)
            try:
                await recover_orphaned_runs(tasks, kind)
            except Exception as error:  # noqa: BLE001 - the next round tries again
                _LOG.warning("Orphaned runs could not be listed: %s", describe_error(error))

    async with background_task(watch(), "watch orphaned runs"):
        yield
