"""Drives one run: waits for its turn, records its events, and stores its end."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from maniple.agents.budget import UsageMeter
from maniple.agents.plan_edits import PendingPlanEdits
from maniple.agents.run_scope import RunScope
from maniple.errors import ManipleError, StoreError
from maniple.events import Event, EventRedactor, RunStatusChanged, StreamState, ToolReturned, Translator
from maniple.evidence import RedactedEvidence
from maniple.graph import Team
from maniple.runs.active_run import ActiveRun, Recorder, RunEventLog
from maniple.runs.artifact_collector import (
    ArtifactCollector,
    ArtifactSaver,
    PageCollector,
    WorkspaceCollector,
)
from maniple.runs.engine_config import EngineConfig, ExecutionEnvironment, RunTelemetry
from maniple.runs.request import RunRequest
from maniple.runs.scheduling import FairSemaphore, ThreadLocks
from maniple.runs.usage import QuotaRegistry
from maniple.runtime import Start, Turn, drive, run_of, thread_state
from maniple.store import RunChange, RunRecord, Store
from maniple.store.executors import run_to_completion
from maniple.store.redaction import RedactedLedger
from maniple.telemetry.logs import log_context

NO_CHECKPOINT = ""
"""The `base_checkpoint` of a thread's first run."""
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.005, 1.0
"""How often to test whether the previous run is over: soon at first, then less often."""
_LOG = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class RunDriver:
    """Drives runs of one team, one at a time per thread and in one slot each."""

    team: Team
    store: Store
    recorder: Recorder
    slots: FairSemaphore
    rules: EngineConfig
    telemetry: RunTelemetry
    quotas: QuotaRegistry
    workplace: ExecutionEnvironment = field(default_factory=ExecutionEnvironment)
    outputs: WorkspaceCollector | None = None
    _order: ThreadLocks = field(default_factory=ThreadLocks)
    _turns: ThreadLocks = field(default_factory=ThreadLocks)

    def prepare(self, record: RunRecord, *, told: int = 0) -> ActiveRun:
        """Return the run before it is driven; `told` is the number of its newest event."""
        request = RunRequest.of(record)
        log = RunEventLog(record.run_id, self.store.events, told=told)
        day = self.quotas.of(record.owner)
        meter = UsageMeter(request.budget, self.rules.prices, record.usage, shared=day)
        redacting = EventRedactor(self.rules.redactor)
        return ActiveRun(record, request, log, meter, redacting, PendingPlanEdits(request.wishes))

    async def waiting_for(self, record: RunRecord) -> dict[str, Any]:
        """Return what a run waits for, by interrupt id; empty when its thread has moved on."""
        state = await thread_state(self.team, record.thread_id)
        if run_of(state) != record.run_id:
            return {}
        return {pause.id: pause.value for pause in state.interrupts}

    async def keep_request(self, active: ActiveRun, request: RunRequest) -> None:
        """Store a changed request of an active run."""
        active.request = request
        await self.store.runs.change(
            active.record.run_id, request=request.without_secrets(self.rules.redactor)
        )

    async def work(self, active: ActiveRun, start: Start, stream: StreamState) -> None:
        """Drive the run to its end, a pause, or the end of this program. The caller closes its log."""
        record = active.record
        active.resume_after(stream)
        try:
            with log_context(run_id=record.run_id, thread_id=record.thread_id, key_id=record.owner):
                _LOG.info("The run begins (%s).", start)
                if self.workplace.warning:
                    _LOG.warning(self.workplace.warning)
                await active.tell(self._events(active, self._turn(active, start, stream)), self.recorder)
                _LOG.info("The run is %s.", "suspended" if active.suspended else active.status)
        except asyncio.CancelledError:
            if not (active.cancelled or active.suspended):
                raise
        except StoreError as error:
            active.log.close(error)
        finally:
            # A cancellation has no effect here: the end is being written.
            with suppress(asyncio.CancelledError):
                await run_to_completion(self._leave(active))

    async def _events(self, active: ActiveRun, turn: Turn) -> AsyncGenerator[Event]:
        """Yield the events of the turn, of the pages that it read and, before its end, of its files.

        Files that a call wrote are reported concurrently, soon after the call.
        """
        pages = PageCollector(self.store, active)
        async with AsyncExitStack() as stack:
            collector = None
            if self.outputs is not None:
                collector = await stack.enter_async_context(
                    ArtifactCollector(self.outputs, active, self.recorder)
                )
            events = await stack.enter_async_context(aclosing(drive(self.team, turn)))
            async for event in events:
                if isinstance(event, RunStatusChanged) and collector and not active.suspended:
                    async for made in collector.last():
                        yield made
                yield event
                self.workplace.hear(event, active.record.thread_id)
                if isinstance(event, ToolReturned):
                    if collector:
                        collector.look()
                    async for page in pages.read_by(event.tool_name):
                        yield page

    def _turn(self, active: ActiveRun, start: Start, stream: StreamState) -> Turn:
        record, request = active.record, active.request
        return Turn(
            record.run_id,
            record.thread_id,
            request.messages,
            request.options,
            start=start,
            answers=request.answers,
            stream=stream,
            scope=RunScope(
                record.run_id,
                RedactedLedger(self.store.ledger, self.rules.redactor),
                active.meter,
                frozenset(request.approval),
                active.plan_edits,
                RedactedEvidence(self.store.evidence(record.run_id), self.rules.redactor),
                is_watched=lambda: active.log.is_followed,
                store_file=ArtifactSaver(self.store, record),
            ),
            callbacks=self.telemetry.callbacks(record.run_id, record.thread_id),
            control=active.control,
            gate=self._place(active, start),
            durable=True,
            thread_name=record.thread_name,
        )

    @asynccontextmanager
    async def _place(self, active: ActiveRun, start: Start) -> AsyncGenerator[None]:
        """Wait for the thread, for a slot, and for other processes."""
        record, metrics = active.record, self.telemetry.metrics
        if metrics is not None:
            metrics.queue(record.run_id)
        async with AsyncExitStack() as stack:
            if start != "answer":
                # An answer precedes the runs that wait for the end of the interrupted run.
                await stack.enter_async_context(self._order.take(record.thread_id))
            pause = _FIRST_PAUSE_SECONDS
            while True:
                async with self._turns.take(record.thread_id), self.slots.hold(record.owner):
                    if await self._begins(active, start):
                        if metrics is not None:
                            metrics.begin(record.run_id)
                        self.quotas.of(record.owner).attach(record.run_id, active.meter)
                        active.meter.start()
                        yield
                        return
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    async def _begins(self, active: ActiveRun, start: Start) -> bool:
        """Change the run to `running`, unless another run still holds the thread."""
        record = active.record
        change: RunChange = {}
        if record.started_at is None:
            change["started_at"] = time.time()
        if record.base_checkpoint is None and start != "answer":
            elsewhere = await self.store.runs.list_in_other_processes(record.thread_id)
            if any(one.status == "running" for one in elsewhere):
                return False
            state = await thread_state(self.team, record.thread_id)
            if (before := run_of(state)) != record.run_id:
                if before and await self._is_open(before, elsewhere):
                    return False
                base = state.config.get("configurable", {}).get("checkpoint_id")
                change["base_checkpoint"] = base or NO_CHECKPOINT
        begun = await self.store.runs.start(record.run_id, **change)
        if begun is None:
            kept = await self.store.runs.get(record.run_id)
            if kept is not None and kept.is_unfinished and kept.process == record.process:
                return False
            # Deleted, ended or claimed by another process meanwhile: stop as if this process had died.
            active.suspended = True
            raise asyncio.CancelledError
        active.record = begun
        return True

    async def _is_open(self, run_id: str, elsewhere: Sequence[RunRecord]) -> bool:
        """Whether the previous run of the thread waits for an answer or is not over yet."""
        run = await self.store.runs.get(run_id)
        if run is None or not run.is_unfinished:
            return run is not None and run.status == "interrupted"
        return run.process == self.store.process or any(one.run_id == run_id for one in elsewhere)

    async def _leave(self, active: ActiveRun) -> None:
        """Store the end of the run. A suspended run, or one with a lost event, stays unfinished."""
        try:
            await self.recorder.settled()
            if active.log.failure is None and (active.ended or not active.suspended):
                if active.status == "cancelled" and self.workplace.sandbox is not None:
                    # Before its end is stored: after that the next run of the thread may start.
                    await self.workplace.sandbox.stop(active.record.thread_id)
                await self._keep_end(active)
        except StoreError as error:
            active.log.close(error)

    async def _keep_end(self, active: ActiveRun) -> None:
        record, failed = active.record, active.failure
        status = active.status or "failed"
        change: RunChange = {"status": status, "usage": active.meter.used}
        if status != "interrupted":
            change["ended_at"] = time.time()
        if failed is not None:
            change["error_code"], change["error"] = failed.code, failed.message
        # A rollback may need the checkpoints of a cancelled run; the next run that ends prunes them.
        kept = status in ("interrupted", "cancelled")
        if not kept and not self._turns.is_taken(record.thread_id):
            async with self._turns.take(record.thread_id):
                # Before the end is stored: after that another process may work on the thread.
                await self.store.checkpoints.prune(record.thread_id)
        async with self.quotas.of(record.owner).writing(record.run_id):
            active.record = await self.store.runs.change(record.run_id, **change) or record
        await self.store.threads.touch(record.thread_id)

    def forget(self, active: ActiveRun) -> None:
        """Remove a run that is no longer driven from quotas and metrics."""
        self.quotas.of(active.record.owner).forget(active.record.run_id, active.meter)
        if self.telemetry.metrics is not None and not active.ended:
            self.telemetry.metrics.forget(active.record.run_id)

    async def fail(self, active: ActiveRun, stream: StreamState, error: ManipleError) -> None:
        """Fail a run that is not driven: close its stream and store its end."""
        active.resume_after(stream)
        record = active.record
        translator = Translator(record.run_id, record.thread_name, active.request.messages, stream)
        with suppress(Exception):  # without a readable state, the messages of the request are used
            state = await thread_state(self.team, record.thread_id)
            if run_of(state) == record.run_id:
                translator.recall(state.values["messages"])
        for event in (*translator.open(), *translator.close("failed", error)):
            await active.note(event, self.recorder)
        await self._leave(active)
