"""What a person asks of a schedule, checked, and the record that is made of it."""

from dataclasses import dataclass, replace
from uuid import uuid4

from maniple.redaction import Redactor
from maniple.runs import RunRequest
from maniple.schedules.schedule_times import InvalidSchedule, load_zone, next_time, parse_moment
from maniple.store import Overlap, Schedule, ScheduleTable
from maniple.text import fix_surrogates

MAX_SCHEDULES = 200
"""How many schedules one API key may have."""
MAX_NAME_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class ScheduleTiming:
    """When: `cron`, or the single moment `at` (ISO 8601), in the time zone `zone` (an IANA name)."""

    cron: str = ""
    at: str = ""
    zone: str = "UTC"

    def first_time(self, now: float) -> float:
        """Return the first time after `now`, Unix seconds; raises `InvalidSchedule`."""
        load_zone(self.zone)
        if bool(self.cron) == bool(self.at):
            raise InvalidSchedule("Give either cron or at: a schedule repeats, or has one time.")
        first = next_time(self.cron, self.zone, now) if self.cron else parse_moment(self.at, self.zone)
        if first is None:
            raise InvalidSchedule(f"{self.cron!r} is never due. Choose another day or month.")
        if first <= now:
            raise InvalidSchedule(f"{self.at} is past. Choose a time to come.")
        return first


@dataclass(frozen=True, slots=True)
class ScheduleSpecification:
    """What is asked of a schedule. `thread_id` is that of a stored thread; "" makes a thread for each run."""

    timing: ScheduleTiming
    name: str = ""
    overlap: Overlap = "skip"
    catch_up: bool = True
    thread_id: str | None = None


def make_schedule(
    asked: ScheduleSpecification, request: RunRequest, now: float, redactor: Redactor
) -> Schedule:
    """Return the record of a new schedule, without secrets; raises `InvalidSchedule`."""
    name = asked.name.strip() or request.messages[-1].text
    return Schedule(
        schedule_id=str(uuid4()),
        owner=request.owner,
        name=redactor.text(fix_surrogates(" ".join(name.split())))[:MAX_NAME_CHARACTERS],
        cron=asked.timing.cron.strip(),
        zone=asked.timing.zone,
        overlap=asked.overlap,
        catch_up=asked.catch_up,
        thread_id=asked.thread_id,
        request=request.without_secrets(redactor),
        created_at=now,
        next_at=asked.timing.first_time(now),
    )


def resumed_schedule(schedule: Schedule, now: float) -> Schedule:
    """Return a schedule that is not paused any more. The ticks of a pause are not caught up with.

    It is over if its last one was among them.
    """
    if schedule.paused_at is None:
        return schedule
    if schedule.cron:
        following = next_time(schedule.cron, schedule.zone, now)
    else:
        following = schedule.next_at if (schedule.next_at or 0.0) > now else None
    return replace(schedule, paused_at=None, next_at=following)


async def require_room(schedules: ScheduleTable, owner: str) -> None:
    """Raise `InvalidSchedule` if an owner has as many schedules as are allowed."""
    if await schedules.count(owner) >= MAX_SCHEDULES:
        raise InvalidSchedule(f"There are {MAX_SCHEDULES} schedules, which is the limit. Remove one first.")
