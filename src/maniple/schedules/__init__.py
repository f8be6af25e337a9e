"""Schedules: runs that are started at their times, each time once."""

from maniple.schedules.run_schedules import ConversationSchedules, local_zone
from maniple.schedules.schedule_times import (
    InvalidSchedule,
    list_next_times,
    load_zone,
    next_time,
    parse_moment,
)
from maniple.schedules.scheduler import Scheduler, open_scheduler, read_request
from maniple.schedules.specification import (
    ScheduleSpecification,
    ScheduleTiming,
    make_schedule,
    require_room,
    resumed_schedule,
)

__all__ = [
    "ConversationSchedules",
    "InvalidSchedule",
    "ScheduleSpecification",
    "ScheduleTiming",
    "Scheduler",
    "list_next_times",
    "load_zone",
    "local_zone",
    "make_schedule",
    "next_time",
    "open_scheduler",
    "parse_moment",
    "read_request",
    "require_room",
    "resumed_schedule",
]
