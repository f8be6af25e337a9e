"""Drives one run: waits for its turn, records its events, and stores its end."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from maniple.errors import ManipleError, StoreError, UnconfiguredModel
from maniple.events import (
    Event,
    EventRedactor,
    RunStatusChanged,
    SessionState,
    StreamState,
    ToolReturned,
    Translator,
    WorkflowEnded,
    as_chat_message,
    history_digest,
    read_questions,
)
from maniple.events.redactor import redacted_event
from maniple.evidence import RedactedEvidence
from maniple.graph import members_of
from maniple.runs.active_run import ActiveRun, RunPhase, RunServices, Stop
from maniple.runs.artifact_collector import (
    ArtifactCollector,
    ArtifactSaver,
    PageCollector,
    WorkspaceCollector,
)
from maniple.runs.decisions import NO_CHECKPOINT
from maniple.runs.ended_runs import find_exchange, read_ended_run
from maniple.runs.engine_config import ExecutionEnvironment
from maniple.runs.event_log import RunEventLog
from maniple.runs.newest_work import NewestWork, read_newest_work
from maniple.runs.outages import NOT_WAITING, ModelOutages, ModelWait, RunStoreWait
from maniple.runs.request import RunRequest
from maniple.runs.search_index import index_run
from maniple.runs.steering import MessageDesk, answers_of
from maniple.runs.stored_inputs import StoredInputs
from maniple.runs.teams import TeamSource
from maniple.runs.turn import Start, Turn, drive, run_of, thread_state
from maniple.runs.turn_scheduler import TurnScheduler
from maniple.runs.usage import QuotaRegistry
from maniple.scope.budget import UsageMeter
from maniple.scope.inbox import Inbox
from maniple.scope.inputs import EndedRun, ReceivedInput
from maniple.scope.run_scope import RunScope
from maniple.store import RunChange, RunRecord
from maniple.store.executors import run_to_completion
from maniple.store.redaction import RedactedLedger
from maniple.store.waiting import WaitLimit, waiting
from maniple.telemetry.logs import log_context

_RUNS_PAGE = 5
_MAX_READ_RUNS = 20
"""The number of a thread's newest runs that are read for its record."""
_LOG = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class RunDriver:
    """Drives runs of one team, each when its scheduler lets it work."""

    services: RunServices
    scheduler: TurnScheduler
    quotas: QuotaRegistry
    environment: ExecutionEnvironment = field(default_factory=ExecutionEnvironment)
    file_collector: WorkspaceCollector | None = None
    outages: ModelOutages = field(default_factory=lambda: ModelOutages(0))
    store_limit: WaitLimit = field(default_factory=lambda: WaitLimit(0))

    def prepare(
        self, record: RunRecord, received: Sequence[ReceivedInput] = (), *, newest_number: int = 0
    ) -> ActiveRun:
        """Return the active run for a record, not started yet.

        `received` are its stored inputs, `newest_number` is that of its newest event.
        """
        request = RunRequest.of(record)
        log = RunEventLog(record.run_id, self.services.store.events, newest_number=newest_number)
        day = self.quotas.of(record.owner)
        redactor = self.services.config.redactor
        inbox = Inbox(received, StoredInputs(self.services.store.inputs, record.run_id, redactor))
        budget = inbox.budget or request.budget
        meter = UsageMeter(budget, self.services.config.prices, record.usage, shared=day)
        return ActiveRun(record, request, log, meter, EventRedactor(redactor), inbox)

    async def work(self, active: ActiveRun, start: Start, stream: StreamState) -> None:
        """Drive the run to its end, a pause, or the end of this program. The caller closes its log."""
        with waiting(RunStoreWait(self.store_limit, active, self.services.recorder)):
            await self._work(active, start, stream)

    async def _work(self, active: ActiveRun, start: Start, stream: StreamState) -> None:
        record = active.record
        active.resume_after(stream)
        try:
            with log_context(run_id=record.run_id, thread_id=record.thread_id, key_id=record.owner):
                _LOG.info("The run begins (%s).", start)
                if self.environment.warning:
                    _LOG.warning(self.environment.warning)
                try:
                    async with self.services.teams.use(active.request.model) as (team, source):
                        active.team = team
                        turn = await self._turn(active, start, stream, source)
                        await active.record_all(self._events(active, turn), self.services.recorder)
                except UnconfiguredModel as error:
                    await self._close_stream(active, stream, error)
                _LOG.info("The run is %s.", "left to another program" if active.is_left else active.status)
        except asyncio.CancelledError:
            if active.stop is None:
                raise
        except StoreError as error:
            active.log.close(error)
        finally:
            # A cancellation has no effect here: the end is being written.
            with suppress(asyncio.CancelledError):
                await run_to_completion(self._finish(active))

    async def _events(self, active: ActiveRun, turn: Turn) -> AsyncGenerator[Event]:
        """Yield the events of the turn, of pages that it read, and, before its end, of its new files.

        Files that a tool call wrote are reported concurrently, soon after the call.
        """
        pages, desk = PageCollector(self.services.store, active), MessageDesk(self.services, active)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(desk.at_work())
            collector = await stack.enter_async_context(
                ArtifactCollector(self.file_collector, active, self.services.recorder)
            )
            events = await stack.enter_async_context(aclosing(drive(active.team or self.services.team, turn)))
            while (event := await active.next_event(events)) is not None:
                if isinstance(event, RunStatusChanged) and not active.is_suspended:
                    active.status = event.status  # from here on a cancel comes too late
                    await desk.close(event.status)
                    async for made in collector.finish():
                        yield made
                await self._store_history(active, event)
                yield event
                await desk.resume()
                self.environment.release_after_step(event, active.record.thread_id)
                if isinstance(event, ToolReturned):
                    collector.schedule_scan()
                    async for page in pages.collect_after(event.tool_name):
                        yield page.in_turn(event.turn)

    async def _turn(self, active: ActiveRun, start: Start, stream: StreamState, source: TeamSource) -> Turn:
        record, request = active.record, active.request
        wait = ModelWait(self.services, active, self.outages)
        stopped = NewestWork()
        if start != "new":
            stopped = await read_newest_work(self.services.store.events, record.run_id)
        return Turn(
            record.run_id,
            record.thread_id,
            request.messages,
            request.options,
            start=start,
            answers=answers_of(active.inbox.segment),
            stream=stream,
            scope=RunScope(
                record.run_id,
                RedactedLedger(self.services.store.ledger, self.services.config.redactor),
                active.meter,
                frozenset(request.approval),
                self.services.config.on_unknown,
                active.inbox,
                RedactedEvidence(self.services.store.evidence(record.run_id), self.services.config.redactor),
                is_watched=lambda: active.log.is_followed,
                store_file=ArtifactSaver(self.services.store, record),
                read_runs=partial(self._read_ended_runs, record),
                schedules=self.environment.schedules(request) if self.environment.schedules else None,
                stopped_work=stopped.shown(),
                begun_at=stopped.begun_at,
                effortless_models=active.effortless_models,
                client_tools=request.client_tools,
            ),
            callbacks=[
                *self.services.telemetry.callbacks(record.run_id, record.thread_id, start == "new"),
                wait,
            ],
            control=active.control,
            gate=self._wait_for_turn(active, start, wait, source),
            durable=True,
            thread_name=record.thread_name,
        )

    async def _read_ended_runs(self, record: RunRecord, known: Collection[str]) -> list[EndedRun]:
        """Return the newest runs on the thread of a run that have ended and are not known, oldest first."""
        runs: list[RunRecord] = []
        before: float | None = None
        while len(runs) < _MAX_READ_RUNS:
            page = await self.services.store.runs.list_by_thread(record.thread_id, _RUNS_PAGE, before)
            runs += page
            if len(page) < _RUNS_PAGE or any(one.run_id in known for one in page):
                break
            before = page[-1].created_at
        new = [one for one in runs if one.ended_at is not None and one.run_id not in known]
        return [await self._read_ended_run(one) for one in reversed(new) if one.run_id != record.run_id]

    async def _read_ended_run(self, record: RunRecord) -> EndedRun:
        store = self.services.store
        ended = await read_ended_run(store, record, members_of(self.services.team))
        work: Mapping[int, Sequence[str]] = {}
        if ended.status != "completed":
            work = (await read_newest_work(store.events, record.run_id)).shown()
        return replace(ended, work=work)

    @asynccontextmanager
    async def _wait_for_turn(
        self, active: ActiveRun, start: Start, wait: ModelWait, source: TeamSource
    ) -> AsyncGenerator[None]:
        """Wait until the run may work, and tell those who count and pay for it."""
        record, metrics = active.record, self.services.telemetry.metrics
        if metrics is not None:
            metrics.queue(record.run_id)
        async with self.scheduler.enter(active, start, partial(self._start_running, active, start)) as slot:
            if metrics is not None:
                metrics.begin(record.run_id)
            self.quotas.of(record.owner).attach(record.run_id, active.meter)
            active.meter.start()
            await source.load()
            async with wait.using(slot):
                yield

    async def _start_running(self, active: ActiveRun, start: Start) -> bool:
        """Set the run's status to `running`; return False if another run still uses the thread."""
        record = active.record
        change: RunChange = {}
        if record.started_at is None:
            change["started_at"] = time.time()
        if record.base_checkpoint is None and start != "answer":
            others = await self.services.store.runs.list_in_other_processes(record.thread_id)
            if any(one.status == "running" for one in others):
                return False
            state = await thread_state(self.services.team, record.thread_id)
            if (before := run_of(state)) != record.run_id:
                if before and await self._is_open(before, others):
                    return False
                base = state.config.get("configurable", {}).get("checkpoint_id")
                change["base_checkpoint"] = base or NO_CHECKPOINT
        begun = await self.services.store.runs.start(record.run_id, **change)
        if begun is None:
            stored = await self.services.store.runs.get(record.run_id)
            if stored is not None and stored.is_unfinished and stored.process == record.process:
                return False
            # Deleted, ended or claimed by another process in the meantime: stop as if this process had died.
            active.stop = Stop.SUSPEND
            raise asyncio.CancelledError
        active.record = begun
        return True

    async def _is_open(self, run_id: str, others: Sequence[RunRecord]) -> bool:
        """Return whether the previous run of the thread waits for an answer or has not ended."""
        run = await self.services.store.runs.get(run_id)
        if run is None or not run.is_unfinished:
            return run is not None and run.status == "interrupted"
        return run.process == self.services.store.process or any(one.run_id == run_id for one in others)

    async def _finish(self, active: ActiveRun) -> None:
        """Store the end of the run. A run that is left, or one with a lost event, stays unfinished."""
        try:
            await self.services.recorder.wait_until_stored()
            if active.log.failure is None and not active.is_left:
                if active.status == "cancelled" and self.environment.sandbox is not None:
                    # Before its end is stored: after that the next run of the thread may start.
                    await self.environment.sandbox.stop(active.record.thread_id)
                await self._store_end(active)
        except StoreError as error:
            active.log.close(error)

    async def _store_end(self, active: ActiveRun) -> None:
        record, failed = active.record, active.failure
        status = active.status or "failed"
        change: RunChange = {"status": status, "usage": active.meter.answered, **NOT_WAITING}
        if status != "interrupted":
            change["ended_at"] = time.time()
        if failed is not None:
            change["error_code"], change["error"] = failed.code, failed.message
        async with self.quotas.of(record.owner).writing(record.run_id):
            active.record = await self.scheduler.end(active, change) or record
        await self.services.store.threads.touch(record.thread_id)
        if status != "interrupted":
            try:
                await index_run(self.services.store, active.record)
            except StoreError as error:  # the next start of the service tries again
                _LOG.warning("The run could not be indexed for the search: %s", error)

    async def _store_history(self, active: ActiveRun, event: Event) -> None:
        """Before the conversation is returned to the client, store the digest that recognizes it later.

        A client that has cancelled the run does not read its end: it continues with what it had sent.
        """
        if active.is_returned or not isinstance(event, WorkflowEnded | SessionState):
            return
        active.is_returned = True
        run_id, thread_id = active.record.run_id, active.record.thread_id
        messages = redacted_event(event, self.services.config.redactor).messages
        try:
            if active.status == "cancelled":
                messages = [as_chat_message(one) for one in active.request.messages[:-1]]
                messages = [redacted_event(one, self.services.config.redactor) for one in messages]
            elif active.status == "interrupted":
                await self.services.recorder.wait_until_stored()
                messages = [*messages, *await read_questions(self.services.store.events, run_id)]
            digest = history_digest(messages) if messages else ""
            await self.services.store.threads.touch(thread_id, history=digest)
        except StoreError as error:
            # Without it, the next request of such a client begins a new thread with the whole conversation.
            _LOG.warning("The end of the conversation could not be stored: %s", error)

    def forget(self, active: ActiveRun) -> None:
        """Remove a run that is no longer driven from quotas and metrics."""
        self.quotas.of(active.record.owner).forget(active.record.run_id, active.meter)
        if self.services.telemetry.metrics is not None and active.phase is not RunPhase.ENDED:
            self.services.telemetry.metrics.forget(active.record.run_id)

    async def fail(self, active: ActiveRun, stream: StreamState, error: ManipleError) -> None:
        """Fail a run that is not driven: close its stream and store its end."""
        await self._close_stream(active, stream, error)
        await self._finish(active)

    async def _close_stream(self, active: ActiveRun, stream: StreamState, error: ManipleError) -> None:
        """Record the events with which a run fails before it works."""
        active.resume_after(stream)
        record = active.record
        translator = Translator(record.run_id, record.thread_name, active.request.messages, stream)
        with suppress(Exception):  # if the state cannot be read, the messages of the request are used
            state = await thread_state(self.services.team, record.thread_id)
            if run_of(state) == record.run_id:
                translator.recall(state.values["messages"])
        left = partial(find_exchange, active.inbox.received, "failed")
        for event in (*translator.open(), *translator.close("failed", error, left)):
            await self._store_history(active, event)
            await active.record_event(event, self.services.recorder)
