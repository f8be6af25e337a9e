"""The worker: it takes runs from the queue, drives them, and carries out what is sent to them."""

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

from procrastinate import App, JobContext
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job
from procrastinate.retry import BaseRetryStrategy, RetryDecision
from procrastinate.worker import Worker

from maniple.errors import RunTakenOver, StoreError, StoreUnreachable, describe_error
from maniple.runs.active_run import CANCEL_SECONDS, ActiveRun
from maniple.runs.queue.bells import RunBells
from maniple.runs.queue.commands import CommandHandler
from maniple.runs.queue.connector import open_procrastinate
from maniple.runs.recovery import RunProgress, continue_or_fail
from maniple.runs.run_tasks import RunTasks
from maniple.runs.stored_inputs import COMMAND, from_record
from maniple.store import InputRecord
from maniple.store.postgres.contact import SILENT_PART
from maniple.store.postgres.database import PostgresDatabase
from maniple.store.postgres.queue import QUEUE, TASK, RunQueue
from maniple.store.waiting import StoreWait, waiting

REFUSED_STATUS = 75
"""The exit status of a worker that has lost its runs to another one: start it again (EX_TEMPFAIL)."""
POLL_SECONDS = 1.0
SWEEP_SECONDS = 1.0
METER_SECONDS = 10.0
GIVE_BACK_SECONDS = 2.0
"""How long a worker holds a run that the store prevents from going on, before it gives it back."""
_WATCHES_OF_LEASE = 10
_LOG = logging.getLogger(__name__)


class RunGivenBack(Exception):
    """This process drives a run no longer and has not ended it: its job goes back to the queue."""


class _GiveBack(BaseRetryStrategy):
    """Queues the job of a run again that was not driven to its end."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        is_lost = isinstance(exception, RunGivenBack | StoreError | asyncio.CancelledError)
        return RetryDecision() if is_lost else None


@asynccontextmanager
async def _pausing_after_failure() -> AsyncGenerator[None]:
    """Hold a job for a moment when the store fails: what prevents a run may last, such as a full disk."""
    try:
        yield
    except (StoreError, RunGivenBack) as error:
        if isinstance(error, StoreError) or error.__cause__ is not None:
            await asyncio.sleep(GIVE_BACK_SECONDS)
        raise


class RunWorker:
    """Drives up to `concurrency` runs of the queue at once. Use `at_work`.

    `leave` ends this process at once with an exit status; it is called when the process has lost its runs.
    """

    def __init__(
        self,
        tasks: RunTasks,
        queue: RunQueue,
        bells: RunBells,
        database: PostgresDatabase,
        concurrency: int,
        leave: Callable[[int], None] = os._exit,
    ) -> None:
        self.tasks = tasks
        self._queue = queue
        self._bells = bells
        self._database = database
        self._concurrency = concurrency
        self._leave = leave
        self._commands = CommandHandler(tasks)
        self._limit = tasks.driver.store_limit
        self._handled: dict[str, asyncio.Task[None]] = {}
        self._driven: set[str] = set()
        self._missed: set[str] = set()
        """The runs that were sent something before they were active here: they look for it."""
        self._looking: set[asyncio.Task[None]] = set()
        self._worker: Worker | None = None

    @asynccontextmanager
    async def at_work(self) -> AsyncGenerator[None]:
        """Drive runs inside of the context; on leaving, those under way are given back."""
        async with open_procrastinate(self._database, self._limit) as app:
            app.task(name=TASK, queue=QUEUE, pass_context=True, retry=_GiveBack())(self._drive)
            self._bells.hear_inputs(self._look)
            working = asyncio.create_task(self._work(app), name="queue worker")
            beside = [
                asyncio.create_task(one, name=f"queue {one.__name__}")
                for one in (self._sweep(), self._store_usage())
            ]
            with _Watchdog(self._database, self._leave):
                try:
                    yield
                finally:
                    await self.drain()
                    for task in beside:
                        task.cancel()
                    await asyncio.wait([working, *beside])

    async def drain(self) -> None:
        """Take no more runs from the queue, and give those under way back at their next checkpoint."""
        if self._worker is not None:
            self._worker.stop()
        await self.tasks.drain()

    async def _work(self, app: App) -> None:
        while not self.tasks.admission.is_closed:
            self._worker = Worker(
                app,
                queues=[QUEUE],
                concurrency=self._concurrency,
                fetch_job_polling_interval=POLL_SECONDS,
                delete_jobs="always",
                install_signal_handlers=False,
                shutdown_graceful_timeout=self.tasks.services.config.drain_seconds + 2 * CANCEL_SECONDS,
            )
            try:
                await self._worker.run()
            except ConnectorException as error:
                _LOG.warning("The queue could not be read: %s", describe_error(error))
                await asyncio.sleep(POLL_SECONDS)

    async def _drive(self, context: JobContext, run_id: str) -> None:
        """Drive the run of a job until it has ended, pauses, or this process stops."""
        if self.tasks.admission.is_closed:
            raise RunGivenBack
        job = context.job.id
        # What this process does for the run beside driving it waits for the store, too.
        with waiting(StoreWait(self._limit)):
            await self._drive_job(job, run_id)

    async def _drive_job(self, job: int | None, run_id: str) -> None:
        async with _pausing_after_failure():
            if run_id in self._driven:
                error = RunTakenOver("Another process took this one for dead, and gave its runs back.")
                self._refused(error)
                raise error
            claimed = await self._queue.claim(run_id, job) if job is not None else None
            if claimed is None:
                return  # it has ended meanwhile
            self._driven.add(run_id)
            if claimed.has_pending:
                self._missed.add(run_id)
            try:
                progress = RunProgress(claimed.has_moved, claimed.repeats)
                await continue_or_fail(
                    self.tasks, claimed.run, was_begun=claimed.is_taken_over, progress=progress
                )
                await self._follow(run_id)
            except RunTakenOver as error:
                self._refused(error)
                raise
            finally:
                self._driven.discard(run_id)
                self._missed.discard(run_id)

    async def _follow(self, run_id: str) -> None:
        """Wait until a run that has been started is driven no longer."""
        active = self.tasks.active.get(run_id)
        if active is None or active.task is None:
            return
        if self.tasks.admission.is_closed:
            active.suspend()  # begun after the others were told to stop
        if run_id in self._missed:
            self._look(run_id)
        try:
            await asyncio.wait({active.task})
        except asyncio.CancelledError:
            active.suspend()
            await asyncio.wait({active.task}, timeout=CANCEL_SECONDS)
            await self._queue.give_back(run_id)
            raise
        await self._check(active)

    async def _check(self, active: ActiveRun) -> None:
        """Leave after the loss of a run; raise `RunGivenBack` for one that was not driven to its end."""
        failure = active.log.failure
        is_stopping = self.tasks.admission.is_closed
        if isinstance(failure, RunTakenOver) or (isinstance(failure, StoreUnreachable) and not is_stopping):
            self._refused(failure)
        if failure is not None or active.is_left:
            if failure is None:
                await self._queue.give_back(active.record.run_id)
            raise RunGivenBack from failure

    def _refused(self, error: StoreError) -> None:
        """End this process: another one goes on with its runs, and nothing here may have an effect."""
        _LOG.critical("This process leaves: %s", error)
        self._leave(REFUSED_STATUS)

    def _look(self, run_id: str) -> None:
        """Take in what was sent to a run that this process drives; "" for all of them."""
        wanted = [run_id] if run_id else [*self._driven]
        if known := [one for one in wanted if one in self._driven]:
            task = asyncio.create_task(self._take_in(known), name="queue inputs")
            self._looking.add(task)
            task.add_done_callback(self._looking.discard)

    async def _take_in(self, run_ids: list[str]) -> None:
        try:
            pending = await self._queue.list_pending(run_ids)
        except StoreError as error:
            _LOG.warning("What was sent to runs could not be read yet: %s", error)
            return
        for run_id, sent in pending:
            if (active := self.tasks.active.get(run_id)) is None:
                self._missed |= {run_id} & self._driven
                continue
            if sent.kind == COMMAND:
                self._carry_out(active, sent)
                continue
            await active.inbox.receive([from_record(sent)])
            if active.inbox.has_new_cancel:
                active.cancel()

    def _carry_out(self, active: ActiveRun, sent: InputRecord) -> None:
        if sent.input_id in self._handled:
            return
        task = asyncio.create_task(self._reply(active, sent), name=f"command {sent.input_id}")
        self._handled[sent.input_id] = task
        task.add_done_callback(lambda _: self._handled.pop(sent.input_id, None))

    async def _reply(self, active: ActiveRun, sent: InputRecord) -> None:
        try:
            reply = await self._commands.reply(active, sent)
            await self.tasks.store.inputs.write(active.record.run_id, [], {sent.input_id: reply})
        except Exception as error:  # noqa: BLE001 - it stays, and is tried again at the next look
            _LOG.warning("A command could not be carried out yet: %s", describe_error(error))

    async def _sweep(self) -> None:
        """Give back the jobs of dead processes each second.

        After an outage others have a lease's time to beat: this one may be the first that is back.
        """
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            if not self._database.contact.has_answered_for(self._database.lease_seconds):
                continue
            try:
                if given_back := await self._queue.sweep():
                    _LOG.warning("%d runs of dead processes go on.", given_back)
            except StoreError as error:
                _LOG.warning("The queue could not be swept: %s", error)

    async def _store_usage(self) -> None:
        """Store now and then what runs have used, for the limits that other processes check."""
        while True:
            await asyncio.sleep(METER_SECONDS)
            for run_id in [*self._driven]:
                active = self.tasks.active.get(run_id)
                if active is None or active.status is not None:
                    continue
                with suppress(StoreError):
                    await self.tasks.store.runs.change(run_id, usage=active.meter.answered)


class _Watchdog:
    """Leaves when the process has not heard of its database for a while, also if its event loop hangs."""

    def __init__(self, database: PostgresDatabase, leave: Callable[[int], None]) -> None:
        self._contact, self._lease_seconds = database.contact, database.lease_seconds
        self._leave = leave
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="queue watchdog", daemon=True)

    def __enter__(self) -> None:
        self._contact.heard_at, self._contact.longest_silence = time.monotonic(), 0.0
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        lease_seconds = self._lease_seconds
        while not self._stop.wait(lease_seconds / _WATCHES_OF_LEASE):
            silent = time.monotonic() - self._contact.heard_at
            # One that wakes may beat before this thread looks; others may have given its runs back already.
            longest = max(silent, self._contact.longest_silence)
            if silent > SILENT_PART * lease_seconds or longest > lease_seconds:
                _LOG.critical("This process leaves: it has not heard of its database for %.1f s.", longest)
                self._leave(REFUSED_STATUS)
                return
