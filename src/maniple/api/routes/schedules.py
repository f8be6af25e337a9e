"""Schedules: runs that are started at their times."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated
from uuid import uuid4

from fastapi import Path, Query, Response
from pydantic import BaseModel, Field

from maniple.api.auth import CallerOf, keyed_router
from maniple.api.document import describe_location
from maniple.api.error_responses import error_responses
from maniple.api.requests import RunCreate, check_budget, check_choices
from maniple.api.state import ServiceOf
from maniple.runs import NotFound, RunRequest
from maniple.schedules import (
    ScheduleSpecification,
    ScheduleTiming,
    list_next_times,
    make_schedule,
    require_room,
    resumed_schedule,
)
from maniple.service import Service
from maniple.service.thread_views import ThreadId, get_thread
from maniple.store import Overlap, Schedule, TickState

MAX_NEXT_TIMES = 20
MAX_TICKS = 100

router = keyed_router("schedules")
_SchedulePath = Annotated[str, Path(max_length=100, description="The schedule")]
_NextCount = Annotated[int, Query(ge=0, le=MAX_NEXT_TIMES, description="How many times to come to return")]
_TickCount = Annotated[int, Query(ge=0, le=MAX_TICKS, description="How many past ticks to return")]
_Zone = Annotated[str, Field(max_length=100, examples=["Europe/Berlin"])]
_Text = Annotated[str, Field(max_length=200)]


class ScheduleCreate(BaseModel):
    """The body of `POST /api/schedules`: a run, and either `cron` or `at`."""

    run: RunCreate = Field(description="What each run asks; `multitask_strategy` has no effect.")
    cron: _Text = Field(default="", description="Minute, hour, day, month, weekday", examples=["0 8 * * 1"])
    at: _Text = Field(default="", description="One date and time, in ISO 8601, instead of `cron`.")
    time_zone: _Zone = "UTC"
    name: _Text = ""
    overlap: Overlap = Field(
        default="skip", description="What a tick does while the run before it has not ended."
    )
    catch_up: bool = Field(
        default=True, description="After a downtime, one run for all ticks that were missed; false: none."
    )
    same_thread: bool = Field(default=False, description="All runs continue one conversation.")
    thread_id: ThreadId | None = Field(default=None, description="The conversation that all runs continue.")
    paused: bool = False

    @property
    def timing(self) -> ScheduleTiming:
        """When it is due."""
        return ScheduleTiming(self.cron.strip(), self.at.strip(), self.time_zone)


class ScheduleUpdate(BaseModel):
    """The body of `PATCH /api/schedules/{schedule_id}`: only what changes."""

    run: RunCreate | None = None
    cron: _Text | None = None
    at: _Text | None = None
    time_zone: _Zone | None = None
    name: Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S")] | None = None
    overlap: Overlap | None = None
    catch_up: bool | None = None
    paused: bool | None = None


class ScheduleTickView(BaseModel):
    """What became of one time of a schedule. `run_id` is null where no run was started."""

    tick: float
    state: TickState
    run_id: str | None
    reason: str


class ScheduleView(BaseModel):
    """A schedule. Times are Unix seconds; `next_times` is empty while it is paused and after the last."""

    schedule_id: str
    name: str
    cron: str
    time_zone: str
    overlap: Overlap
    catch_up: bool
    thread_id: str | None
    created_at: float
    paused: bool
    next_times: list[float]
    ticks: list[ScheduleTickView] = []


class ScheduleList(BaseModel):
    """The schedules of a key."""

    schedules: list[ScheduleView]


@router.post(
    "/api/schedules",
    status_code=201,
    operation_id="make_schedule",
    summary="Make a schedule",
    responses={**describe_location(201, "the schedule"), **error_responses(404, 409)},
)
async def make_new_schedule(
    ask: ScheduleCreate, response: Response, service: ServiceOf, caller: CallerOf
) -> ScheduleView:
    """Create a schedule: at each of its times, a run is started, once."""
    await require_room(service.store.schedules, caller.owner)
    thread_id = await _choose_thread(ask, service, caller.owner)
    request = _read_run(ask.run, service, caller.owner)
    asked = ScheduleSpecification(ask.timing, ask.name, ask.overlap, ask.catch_up, thread_id)
    now = time.time()
    schedule = await asyncio.to_thread(make_schedule, asked, request, now, service.redactor)
    schedule = replace(schedule, paused_at=now if ask.paused else None)
    await service.store.schedules.add(schedule)
    response.headers["location"] = f"/api/schedules/{schedule.schedule_id}"
    return await view_schedule(service, schedule)


@router.get("/api/schedules", summary="List schedules", responses=error_responses())
async def list_schedules(service: ServiceOf, caller: CallerOf) -> ScheduleList:
    """The key's schedules, newest first, each with its next time."""
    found = await service.store.schedules.list(caller.owner)
    return ScheduleList(schedules=await asyncio.to_thread(_views, found))


@router.get("/api/schedules/{schedule_id}", summary="Read a schedule", responses=error_responses(404))
async def read_schedule(
    schedule_id: _SchedulePath,
    service: ServiceOf,
    caller: CallerOf,
    upcoming: _NextCount = 5,
    ticks: _TickCount = 20,
) -> ScheduleView:
    """Return a schedule with its next times, and what became of its newest ticks."""
    schedule = await _find(service, schedule_id, caller.owner)
    return await view_schedule(service, schedule, upcoming, ticks)


@router.patch(
    "/api/schedules/{schedule_id}", summary="Change a schedule", responses=error_responses(404, 409)
)
async def change_schedule(
    schedule_id: _SchedulePath, change: ScheduleUpdate, service: ServiceOf, caller: CallerOf
) -> ScheduleView:
    """Change a schedule, pause it, or let it go on. Ticks of a pause are not caught up with."""
    schedule = await _find(service, schedule_id, caller.owner)
    changed = await asyncio.to_thread(_apply, change, schedule, service)
    if not await service.store.schedules.update(changed):
        raise NotFound("The schedule does not exist.")
    return await view_schedule(service, changed)


@router.delete(
    "/api/schedules/{schedule_id}",
    status_code=204,
    summary="Delete a schedule",
    response_class=Response,
    responses=error_responses(404),
)
async def delete_schedule(schedule_id: _SchedulePath, service: ServiceOf, caller: CallerOf) -> None:
    """Delete a schedule. The runs that it has started stay, and go on."""
    if not await service.store.schedules.delete(schedule_id, caller.owner):
        raise NotFound("The schedule does not exist.")


async def view_schedule(
    service: Service, schedule: Schedule, upcoming: int = 5, ticks: int = 20
) -> ScheduleView:
    """Return a schedule with this many times to come and past ticks."""
    view = await asyncio.to_thread(_view, schedule, upcoming)
    past = await service.store.schedules.list_ticks(schedule.schedule_id, ticks)
    views = [
        ScheduleTickView(
            tick=one.tick,
            state=one.state,
            run_id=one.run_id if one.state == "started" else None,
            reason=one.reason,
        )
        for one in past
    ]
    return view.model_copy(update={"ticks": views})


def _views(schedules: Sequence[Schedule]) -> list[ScheduleView]:
    return [_view(one, 1) for one in schedules]


def _view(schedule: Schedule, upcoming: int) -> ScheduleView:
    first = schedule.next_at
    times: list[float] = []
    if first is not None and schedule.paused_at is None and upcoming:
        later = (
            list_next_times(schedule.cron, schedule.zone, first, upcoming - 1)
            if schedule.cron and upcoming > 1
            else []
        )
        times = [first, *later]
    return ScheduleView(
        schedule_id=schedule.schedule_id,
        name=schedule.name,
        cron=schedule.cron,
        time_zone=schedule.zone,
        overlap=schedule.overlap,
        catch_up=schedule.catch_up,
        thread_id=schedule.thread_name,
        created_at=schedule.created_at,
        paused=schedule.paused_at is not None,
        next_times=times,
    )


async def _find(service: Service, schedule_id: str, owner: str) -> Schedule:
    schedule = await service.store.schedules.get(schedule_id, owner)
    if schedule is None:
        raise NotFound("The schedule does not exist.")
    return schedule


async def _choose_thread(ask: ScheduleCreate, service: Service, owner: str) -> str | None:
    if ask.thread_id:
        return (await get_thread(service.store, ask.thread_id, owner)).thread_id
    return str(uuid4()) if ask.same_thread else None


def _read_run(ask: RunCreate, service: Service, owner: str) -> RunRequest:
    check_choices(ask, service.runtime)
    return ask.as_run("", owner, check_budget(ask.asked_budget(), service.settings.models))


def _apply(change: ScheduleUpdate, schedule: Schedule, service: Service) -> Schedule:
    now = time.time()
    named = {"name": change.name, "overlap": change.overlap, "catch_up": change.catch_up}
    changed = replace(schedule, **{name: one for name, one in named.items() if one is not None})
    if change.name is not None:
        changed = replace(changed, name=service.redactor.text(change.name.strip()))
    if change.run is not None:
        request = _read_run(change.run, service, schedule.owner)
        changed = replace(changed, request=request.without_secrets(service.redactor))
    if change.cron is not None or change.at is not None or change.time_zone is not None:
        cron = change.cron if change.cron is not None else "" if change.at else schedule.cron
        timing = ScheduleTiming(cron.strip(), (change.at or "").strip(), change.time_zone or schedule.zone)
        changed = replace(changed, cron=timing.cron, zone=timing.zone, next_at=timing.first_time(now))
    if change.paused is False:
        return resumed_schedule(changed, now)
    return replace(changed, paused_at=changed.paused_at or now) if change.paused else changed
