"""The runs that this process drives, a task each."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from maniple.errors import ManipleError, StoreUnreachable
from maniple.events import StreamState
from maniple.runs.active_run import CANCEL_SECONDS, ActiveRun, Stop
from maniple.runs.driver import RunDriver
from maniple.runs.engine import NotFound
from maniple.runs.event_log import newest_number
from maniple.runs.scheduling import AdmissionControl, ThreadLocks
from maniple.runs.stored_inputs import read_inputs
from maniple.runs.turn import Start
from maniple.scope.inputs import ReceivedInput
from maniple.store import RunRecord


@dataclass(frozen=True, slots=True)
class StoredRun:
    """What a run was sent, and the number of its newest event, as they are stored."""

    received: Sequence[ReceivedInput]
    newest_number: int


class RunTasks:
    """The active runs by id, and the locks under which requests for a thread are decided."""

    def __init__(self, driver: RunDriver) -> None:
        self.driver = driver
        self.services = driver.services
        self.store = driver.services.store
        self.active: dict[str, ActiveRun] = {}
        self.thread_locks = ThreadLocks()
        self.admission = AdmissionControl(self.services.config.limits, self.active, driver.quotas)

    def of_thread(self, thread_id: str) -> list[ActiveRun]:
        """Return the active runs of a thread."""
        return [run for run in self.active.values() if run.record.thread_id == thread_id]

    async def read(self, run_id: str, owner: str) -> RunRecord:
        """Return the record of a run, with the usage so far of one that is active here; raises `NotFound`."""
        active = self.active.get(run_id)
        try:
            record = await self.store.runs.get(run_id, owner)
        except StoreUnreachable:
            if active is None or active.record.owner != owner:
                raise
            record = active.record
        if record is None:
            raise NotFound("The run does not exist.")
        if active is None:
            return record
        # It is stored at the end of the run.
        record = replace(record, usage=active.meter.answered)
        if (away := active.outage) is not None and record.is_unfinished:
            waits = {"waiting_for": "store", "waiting_since": away.since, "waiting_until": away.until}
            record = replace(record, status="queued", **waits)
        return record

    def waits_for_store(self, run_id: str) -> bool:
        """Return whether a run is active here and waits for the store."""
        active = self.active.get(run_id)
        return active is not None and active.outage is not None

    def start(self, record: RunRecord) -> None:
        """Begin a run of this process."""
        self._start(self.driver.prepare(record), "new", StreamState())

    async def resume(
        self,
        record: RunRecord,
        start: Start,
        stream: StreamState | None = None,
        known: StoredRun | None = None,
    ) -> ActiveRun:
        """Go on with a stored run; `stream` is the state of a stream that has not ended."""
        active = await self.prepare(record, known)
        self._start(active, start, stream or StreamState())
        return active

    async def fail(self, record: RunRecord, stream: StreamState, why: ManipleError) -> None:
        """End a run that is not active as failed."""
        active = await self.prepare(record)
        await self.driver.fail(active, stream, why)
        active.log.close()

    async def drain(self) -> None:
        """Accept no new runs and stop active ones at their next checkpoint, to continue later."""
        self.admission.close()
        self.driver.store_limit.end()
        runs = list(self.active.values())
        for active in runs:
            if not active.is_cancelled:  # a cancelled run must end and not continue later
                active.stop = Stop.DRAIN
                active.control.request_drain()
                if active.waits_for is not None:
                    active.suspend()  # it comes to no checkpoint before that is back
        tasks = [active.task for active in runs if active.task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=self.services.config.drain_seconds)
            for active in runs:
                if active.task in late:
                    active.suspend()
            if late:
                await asyncio.wait(late, timeout=CANCEL_SECONDS)

    async def prepare(self, record: RunRecord, known: StoredRun | None = None) -> ActiveRun:
        """Return the active run for a stored one, with what was sent to it; it is not started.

        `known` is what the caller has read of it already.
        """
        await self.driver.quotas.refresh_owner(record.owner)
        stored = known or await self._read(record.run_id)
        return self.driver.prepare(record, stored.received, newest_number=stored.newest_number)

    async def _read(self, run_id: str) -> StoredRun:
        received = await read_inputs(self.store.inputs, run_id)
        return StoredRun(received, await newest_number(self.store.events, run_id))

    def _start(self, active: ActiveRun, start: Start, stream: StreamState) -> None:
        run_id = active.record.run_id
        active.task = asyncio.create_task(self.driver.work(active, start, stream), name=f"run {run_id}")
        self.active[run_id] = active
        active.task.add_done_callback(lambda _: self._forget(active))
        if active.inbox.is_cancelled:  # in an earlier process, before its first step
            active.cancel()

    def _forget(self, active: ActiveRun) -> None:
        # Removed before its followers see the end, so that their next request does not find it active.
        if self.active.get(active.record.run_id) is active:
            del self.active[active.record.run_id]
        active.log.close()
        self.driver.forget(active)
        if not self.admission.is_closed:  # else the next process recovers them
            for record in active.next_runs:
                self.start(record)
