"""Starts the runs of schedules.

A tick is stored before its run is started, under the primary key (schedule, tick), with the id that its run
will have. Whoever finds it pending, this process or the next one after a crash, starts the run of this id: a
run that exists is not started again.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from uuid import NAMESPACE_URL, uuid5

from pydantic import ValidationError

from maniple.background import background_task
from maniple.errors import ManipleError, StoreError
from maniple.runs import Engine, RunRequest, ServiceStopping, ThreadBusy
from maniple.schedules.schedule_times import latest_time, next_time
from maniple.store import RunRecord, Schedule, ScheduleTick, Store, TickState

LOOK_SECONDS = 1.0
"""How often due ticks are looked for; other processes may have changed the schedules."""
LATE_SECONDS = 90.0
"""A tick that is found later than this was missed: nobody was there to start it."""
GIVE_UP_SECONDS = 3_600.0
"""How long a run that is refused for now, as at a limit of runs, is tried again."""
MAX_QUEUED_TICKS = 10
"""How many ticks of one schedule wait for earlier runs; more are skipped."""
_LOG = logging.getLogger(__name__)


class Scheduler:
    """Starts runs when they are due. `clock` returns Unix seconds."""

    def __init__(self, store: Store, engine: Engine, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._engine = engine
        self._clock = clock
        self._schedules = store.schedules

    async def run_due(self) -> None:
        """Store the ticks that are due now, and start what waits. Raises `StoreError`."""
        now = self._clock()
        for schedule in await self._schedules.list_due(now):
            await self._store_ticks_or_pause(schedule, now)
        blocked = set[str]()
        for tick in await self._schedules.list_pending():
            # The ticks of one schedule are started in their order.
            if tick.schedule_id not in blocked and not await self._settle(tick, now):
                blocked.add(tick.schedule_id)

    async def _store_ticks_or_pause(self, schedule: Schedule, now: float) -> None:
        """Store the due ticks of a schedule; one whose times cannot be found must not stop the others."""
        try:
            await self._store_ticks(schedule, now)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - it is stored and logged
            why = str(error) if isinstance(error, ManipleError) else f"{type(error).__name__}; see the log."
            _LOG.exception("Schedule %s is paused.", schedule.schedule_id)
            failed = _make_tick(schedule, schedule.next_at or now)
            reason = f"The schedule is paused: {why}"
            await self._schedules.add_tick(replace(failed, state="failed", reason=reason))
            await self._schedules.update(replace(schedule, paused_at=now))

    async def _store_ticks(self, schedule: Schedule, now: float) -> None:
        """Store each due tick of a schedule. Every step may be done again after a crash."""
        due = schedule.next_at
        while due is not None and due <= now:
            if now - due > LATE_SECONDS:
                due = await self._pass_missed(schedule, due, now)
                continue
            following = await self._following(schedule, due)
            await self._schedules.add_tick(_make_tick(schedule, due))
            await self._schedules.advance(schedule.schedule_id, due, following)
            due = following

    async def _pass_missed(self, schedule: Schedule, due: float, now: float) -> float | None:
        """Store what became of the ticks of a downtime that began before `due`; return the next tick.

        The schedule is moved on to the last tick before that one is stored: at a crash in between, the next
        process does not catch up twice.
        """
        cron, zone = schedule.cron, schedule.zone
        last = await asyncio.to_thread(latest_time, cron, zone, now) if cron else None
        if last is not None and due < last:
            reason = f"No server was running; all ticks before {_shown(last)} were missed."
            await self._schedules.add_tick(_missed(schedule, due, reason))
            await self._schedules.advance(schedule.schedule_id, due, last)
            _LOG.warning("Schedule %s missed the ticks from %s on.", schedule.schedule_id, _shown(due))
            return last
        following = await self._following(schedule, due)
        tick = _make_tick(schedule, due)
        if not schedule.catch_up:
            tick = _missed(schedule, due, "No server was running, and the schedule does not catch up.")
        await self._schedules.add_tick(tick)
        await self._schedules.advance(schedule.schedule_id, due, following)
        return following

    async def _following(self, schedule: Schedule, due: float) -> float | None:
        if not schedule.cron:
            return None
        # In a thread: an expression that is hardly ever due takes a while.
        return await asyncio.to_thread(next_time, schedule.cron, schedule.zone, due)

    async def _settle(self, tick: ScheduleTick, now: float) -> bool:
        """Start the run of a tick, or store why it is not started; return False if the tick still waits."""
        schedule = await self._schedules.get(tick.schedule_id, None)
        if schedule is None:
            return True
        try:
            state, reason = await self._decide(schedule, tick)
        except ManipleError as error:
            state, reason = self._after_refusal(schedule, tick, error, now)
        except Exception as error:  # noqa: BLE001 - one schedule must not stop the others
            _LOG.exception("The tick %s of schedule %s failed.", _shown(tick.tick), tick.schedule_id)
            state, reason = "failed", f"The run could not be started ({type(error).__name__}); see the log."
        if state == "pending":
            return False
        await self._schedules.settle(replace(tick, state=state, reason=reason))
        return True

    async def _decide(self, schedule: Schedule, tick: ScheduleTick) -> tuple[TickState, str]:
        if await self._store.runs.get(tick.run_id) is not None:
            return "started", ""
        if schedule.owner:
            key = await self._store.keys.get(schedule.owner)
            if key is None or key.revoked_at is not None:
                await self._schedules.update(replace(schedule, paused_at=self._clock()))
                return "failed", "The API key was revoked; the schedule is paused."
        earlier = await self._find_active(schedule)
        if earlier is not None:
            if schedule.overlap == "skip":
                return "skipped", f"The run {earlier.run_id} had not ended; it was {earlier.status}."
            if schedule.overlap == "queue":
                return await self._queue(schedule, tick)
            await self._engine.cancel(earlier.run_id, schedule.owner)
        await self._start(schedule, tick)
        return "started", ""

    async def _queue(self, schedule: Schedule, tick: ScheduleTick) -> tuple[TickState, str]:
        waiting = await self._schedules.list_ticks(schedule.schedule_id, MAX_QUEUED_TICKS + 1, "pending")
        # The oldest one is asked first, and waits: beyond the limit, it is the one that is let go.
        if len(waiting) > MAX_QUEUED_TICKS and tick.tick < waiting[MAX_QUEUED_TICKS - 1].tick:
            return "skipped", f"{MAX_QUEUED_TICKS} later ticks waited for the run of an earlier one."
        return "pending", ""

    async def _find_active(self, schedule: Schedule) -> RunRecord | None:
        """Return the run of the newest tick with one, if it has not ended."""
        for tick in await self._schedules.list_ticks(schedule.schedule_id, 1, "started"):
            run = await self._store.runs.get(tick.run_id)
            if run is not None and (run.is_unfinished or run.status == "interrupted"):
                return run
        return None

    async def _start(self, schedule: Schedule, tick: ScheduleTick) -> None:
        request = replace(read_request(schedule), thread_id=schedule.thread_id or None, run_id=tick.run_id)
        await self._engine.submit(request)

    def _after_refusal(
        self, schedule: Schedule, tick: ScheduleTick, error: ManipleError, now: float
    ) -> tuple[TickState, str]:
        if isinstance(error, ThreadBusy) and schedule.overlap != "queue":
            return "skipped", str(error)
        if error.retryable and (now - tick.tick <= GIVE_UP_SECONDS or isinstance(error, ServiceStopping)):
            return "pending", ""
        return "failed", str(error)


def read_request(schedule: Schedule) -> RunRequest:
    """Return what the runs of a schedule start from; raises `ManipleError` if it cannot be read."""
    record = RunRecord("", "", schedule.owner, "", "", "queued", schedule.request, schedule.created_at)
    try:
        return RunRequest.of(record)
    except (ValidationError, ValueError) as error:
        raise ManipleError(f"The request of the schedule cannot be read: {error}") from error


@asynccontextmanager
async def open_scheduler(
    store: Store, engine: Engine, clock: Callable[[], float] = time.time
) -> AsyncGenerator[Scheduler]:
    """Look for due ticks until the end of the block."""
    scheduler = Scheduler(store, engine, clock)
    async with background_task(_watch(scheduler), "schedules"):
        yield scheduler


async def _watch(scheduler: Scheduler) -> None:
    while True:
        try:
            await scheduler.run_due()
        except ManipleError as error:
            _LOG.warning("Schedules could not be read: %s", error)
        except Exception:  # noqa: BLE001 - schedules go on until the program ends
            _LOG.exception("Schedules could not be started; they are tried again.")
        await asyncio.sleep(LOOK_SECONDS)


def _make_tick(schedule: Schedule, at: float) -> ScheduleTick:
    run_id = str(uuid5(NAMESPACE_URL, f"maniple:schedule:{schedule.schedule_id}:{at:.3f}"))
    return ScheduleTick(schedule.schedule_id, at, run_id)


def _missed(schedule: Schedule, at: float, reason: str) -> ScheduleTick:
    return replace(_make_tick(schedule, at), state="missed", reason=reason)


def _shown(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
