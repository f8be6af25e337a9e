"""The schedules that a user asks for in a conversation."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5
from zoneinfo import ZoneInfo

from langchain_core.messages import HumanMessage

from maniple.redaction import Redactor
from maniple.runs import RunRequest
from maniple.schedules.schedule_times import InvalidSchedule, list_next_times
from maniple.schedules.specification import (
    ScheduleSpecification,
    ScheduleTiming,
    make_schedule,
    require_room,
)
from maniple.scope.schedules import ScheduleWish
from maniple.store import Schedule, ScheduleTable

SHOWN_TIMES = 3
_LOCAL_TIME = Path("/etc/localtime")
_ZONES = "zoneinfo/"


def local_zone() -> str:
    """Return the IANA name of this machine's time zone; UTC where it is unknown."""
    path = str(_LOCAL_TIME.resolve())
    return path.rpartition(_ZONES)[2] if _ZONES in path else "UTC"


@dataclass(frozen=True, slots=True)
class ConversationSchedules:
    """Makes schedules for the owner of a run. Their runs have its options, and a conversation each."""

    table: ScheduleTable
    request: RunRequest
    """That of the run in which they are asked for."""
    redactor: Redactor
    time_zone: str
    clock: Callable[[], float] = time.time

    async def list_times(self, wish: ScheduleWish) -> Sequence[str]:
        """Return the next times of a wish; raises `InvalidSchedule`, `StoreError`."""
        await require_room(self.table, self.request.owner)
        return await asyncio.to_thread(_show_times, self._make(wish))

    async def add(self, wish: ScheduleWish, run_id: str) -> Sequence[str]:
        """Make the schedule of a run once; raises `InvalidSchedule`, `StoreError`."""
        named = str(uuid5(NAMESPACE_URL, f"maniple:schedule:{run_id}"))
        made = await self.table.get(named, self.request.owner)
        if made is None:
            await require_room(self.table, self.request.owner)
            made = replace(await asyncio.to_thread(self._make, wish), schedule_id=named)
            await self.table.add(made)
        return await asyncio.to_thread(_show_times, made)

    def _make(self, wish: ScheduleWish) -> Schedule:
        if not wish.task:
            raise InvalidSchedule("The schedule has no task.")
        timing = ScheduleTiming(wish.cron, wish.at, wish.time_zone or self.time_zone)
        # Nobody is there to review a plan or to answer when the time comes.
        options = replace(self.request.options, auto_accepted_plan=True, may_ask=False)
        request = replace(
            self.request,
            messages=[HumanMessage(wish.task)],
            thread_id=None,
            options=options,
            when_busy="enqueue",
            run_id="",
            metadata={},
        )
        return make_schedule(ScheduleSpecification(timing), request, self.clock(), self.redactor)


def _show_times(schedule: Schedule) -> list[str]:
    first = schedule.next_at
    if first is None:
        return []
    later = list_next_times(schedule.cron, schedule.zone, first, SHOWN_TIMES - 1) if schedule.cron else []
    zone = ZoneInfo(schedule.zone)
    return [datetime.fromtimestamp(at, zone).strftime("%a %Y-%m-%d %H:%M") for at in [first, *later]]
