"""Runs that wait while the endpoint of their model, or the store, is away, and go on by themselves.

A call that its endpoint does not take stays where it is: what the run has done is not done again. When all
steps at work wait, the run is `queued` and its slot is free for others. It keeps its place on its thread.
A write that the store does not take waits likewise, but in its slot: no other run could work.
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler

from maniple.errors import ModelError, StoreError
from maniple.events import RunContinued, RunWaiting
from maniple.runs.active_run import ActiveRun, RunPhase, RunServices
from maniple.runs.event_log import Recorder
from maniple.runs.scheduling import Slot
from maniple.store import RunChange
from maniple.store.waiting import StoreWait, WaitLimit

FIRST_PAUSE_SECONDS = 2.0
MAX_PAUSE_SECONDS = 20.0
"""The first and the longest pause between two calls that try whether an endpoint is back."""
GROWTH = 1.5
RELEASE_SECONDS = 0.1
"""The pause between the calls that go on when an endpoint is back, so that it does not get all at once."""
NOT_WAITING: RunChange = {"waiting_for": None, "waiting_since": None, "waiting_until": None}
_LOG = logging.getLogger(__name__)


class EndpointQueue:
    """The calls of all runs that wait for one endpoint. One at a time tries whether it is back."""

    def __init__(self) -> None:
        self.is_away = False
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._pause = FIRST_PAUSE_SECONDS
        self._timer: asyncio.TimerHandle | None = None

    def report_failure(self) -> None:
        """Take note that the endpoint did not take a call."""
        if not self.is_away:
            self.is_away, self._pause = True, FIRST_PAUSE_SECONDS

    def report_answer(self) -> None:
        """Take note that the endpoint answers: the calls go on, one after another."""
        self.is_away = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._schedule(RELEASE_SECONDS)

    async def wait(self) -> None:
        """Wait until a call may try; the calls do so in the order in which they came."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._schedule(self._pause)
        await turn

    def _schedule(self, seconds: float) -> None:
        if self._timer is None and self._waiting:
            delay = seconds * random.uniform(0.75, 1.0)
            self._timer = asyncio.get_running_loop().call_later(delay, self._release)

    def _release(self) -> None:
        self._timer = None
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                break
        if self.is_away:
            self._pause = min(self._pause * GROWTH, MAX_PAUSE_SECONDS)
        self._schedule(self._pause if self.is_away else RELEASE_SECONDS)


class ModelOutages:
    """The endpoints for which runs of an engine wait, each run for `seconds` at most.

    Without `waits_unanswered`, an endpoint that has never answered is not waited for: a person who sits
    before the program sees at once that it is configured wrong.
    """

    def __init__(self, seconds: float, *, waits_unanswered: bool = True) -> None:
        self.seconds = seconds
        self._waits_unanswered = waits_unanswered
        self._queues: dict[str, EndpointQueue] = {}

    def queue(self, endpoint: str) -> EndpointQueue:
        """Return the queue of an endpoint."""
        return self._queues.setdefault(endpoint, EndpointQueue())

    def is_waited_for(self, failure: ModelError) -> bool:
        """Return whether a run may wait after this failure."""
        return self.seconds > 0 and (self._waits_unanswered or failure.had_answered)


class ModelWait(AsyncCallbackHandler):
    """Lets the calls of one run wait (`llms.streams.OutageWaiter`). Pass it in the run's callbacks."""

    def __init__(self, services: RunServices, active: ActiveRun, outages: ModelOutages) -> None:
        self._services = services
        self._active = active
        self._outages = outages
        self._calls: dict[UUID, EndpointQueue] = {}
        self._lock = asyncio.Lock()
        self._slot: Slot | None = None
        # A run that another process has left waiting goes on to wait, and not for the whole time again.
        self._since = active.record.waiting_since

    @asynccontextmanager
    async def using(self, slot: Slot) -> AsyncGenerator[None]:
        """Work in a slot, which is released while the run waits."""
        self._slot = slot
        try:
            yield
        finally:
            self._slot = None

    async def wait_out(self, call_id: UUID, endpoint: str, failure: ModelError) -> None:
        """Return when a call is to be sent again.

        Raises `failure` if the run does not wait for it, and `ModelError` when it has waited too long.
        """
        if self._slot is None or not self._outages.is_waited_for(failure):
            raise failure
        queue = self._calls[call_id] = self._outages.queue(endpoint)
        queue.report_failure()
        self._since = self._since or time.time()
        try:
            left = self._since + self._outages.seconds - time.time()
            if left > 0:
                await self._pause(str(failure))
            async with asyncio.timeout(left):
                await queue.wait()
        except BaseException as error:
            del self._calls[call_id]
            if isinstance(error, TimeoutError):
                await self._go_on(is_answered=False)
                raise self._make_late_failure(failure) from failure
            raise
        if not queue.is_away:
            await self._go_on(is_answered=False)

    async def end_wait(self, call_id: UUID) -> None:
        """Go on with a call that had waited: its endpoint answers."""
        if (queue := self._calls.pop(call_id, None)) is not None:
            queue.report_answer()
            await self._go_on(is_answered=True)

    async def on_llm_end(self, response: Any, **kwargs: Any) -> None:
        """Forget the wait of an earlier process: the model answers."""
        if self._since is not None and not self._calls:
            self._since = None
            await self._change(NOT_WAITING)

    async def _pause(self, reason: str) -> None:
        """Let the run wait if nothing of it is at work any more."""
        active, slot, since = self._active, self._slot, self._since
        async with self._lock:
            is_idle = len(self._calls) >= len(active.open_turns)
            if slot is None or since is None or active.waits_for is not None or not is_idle:
                return
            active.waits_for = "model"
            slot.release()
            active.meter.stop()
            if (metrics := self._services.telemetry.metrics) is not None:
                metrics.pause(active.record.run_id)
            until = since + self._outages.seconds
            await self._change(
                {"status": "queued", "waiting_for": "model", "waiting_since": since, "waiting_until": until}
            )
            event = RunWaiting(waiting_for="model", reason=reason, since=since, until=until)
            await active.record_event(event, self._services.recorder)
            _LOG.warning("The run waits for its model, for %g s at most: %s", until - time.time(), reason)

    async def _go_on(self, *, is_answered: bool) -> None:
        """Let the run work again, in a slot.

        An answer that has begun does not wait for one: the run may be one too many for a moment.
        """
        active, slot = self._active, self._slot
        async with self._lock:
            if slot is None or active.waits_for is None:
                return
            if is_answered:
                slot.take()
            else:
                await slot.acquire()
            since, self._since = self._since, self._since if self._is_late else None
            active.waits_for = None
            active.meter.start()
            if (metrics := self._services.telemetry.metrics) is not None:
                metrics.resume(active.record.run_id)
            await self._change({"status": "running", **NOT_WAITING})
            seconds = round(time.time() - (since or time.time()), 1)
            event = RunContinued(waiting_for="model", seconds=seconds)
            await active.record_event(event, self._services.recorder)
            _LOG.info("The run goes on after it waited %g s for its model.", seconds)

    @property
    def _is_late(self) -> bool:
        return self._since is not None and time.time() >= self._since + self._outages.seconds

    async def _change(self, change: RunChange) -> None:
        active = self._active
        try:
            active.record = (
                await self._services.store.runs.change(active.record.run_id, **change) or active.record
            )
        except StoreError as error:
            # Its events say so, too; the end of the run stores its status again.
            _LOG.warning("That the run waits, or goes on, could not be stored: %s", error)

    def _make_late_failure(self, failure: ModelError) -> ModelError:
        late = ModelError(
            f"{failure} The run waited for it for {self._outages.seconds:g} s, which is the limit "
            "(runs.outage_seconds). Retry the run when the model is back.",
            code="model_unreachable",
            retryable=True,
        )
        late.is_outage, late.had_answered = True, failure.had_answered
        return late


class RunStoreWait(StoreWait):
    """Lets the writes of one run wait (`store.waiting`)."""

    def __init__(self, limit: WaitLimit, active: ActiveRun, recorder: Recorder) -> None:
        super().__init__(limit)
        self._active = active
        self._recorder = recorder
        self._writes = 0
        self._event: RunWaiting | None = None
        self._was_at_work = False

    def begin(self, since: float, failure: StoreError) -> None:
        self._writes += 1
        if self._event is not None or self._active.waits_for is not None:
            return
        until, reason = since + self.limit.seconds, str(failure)
        self._event = RunWaiting(waiting_for="store", reason=reason, since=since, until=until)
        self._active.outage = self._event
        self._active.waits_for = "store"
        self._was_at_work = self._active.meter.is_running
        self._active.meter.stop()
        _LOG.warning("The run waits for the store, for %g s at most: %s", until - time.time(), reason)

    async def end(self) -> None:
        self._writes -= 1
        event = self._event
        if self._writes or event is None:
            return
        active, self._event = self._active, None
        active.waits_for = active.outage = None
        if self._was_at_work:
            active.meter.start()
        seconds = round(time.time() - event.since, 1)
        _LOG.info("The run goes on after it waited %g s for the store.", seconds)
        if active.phase is RunPhase.OPEN and not active.is_suspended:
            await active.record_event(event, self._recorder)
            await active.record_event(RunContinued(waiting_for="store", seconds=seconds), self._recorder)
