"""The crons of the LangGraph API: the schedules of the service that have a cron expression."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, Literal

from fastapi import Body, Path, Response
from pydantic import BaseModel, ConfigDict, Field

from maniple.api.auth import CallerOf, keyed_router
from maniple.api.error_responses import error_responses
from maniple.api.not_used import describe_not_used
from maniple.api.protocols.chat_request import TEAM
from maniple.api.protocols.langgraph.accepting import require_webhook
from maniple.api.protocols.langgraph.assistants import UnsupportedRequest, find_agent, make_assistant_id
from maniple.api.protocols.langgraph.run_request import InvalidRun, LangGraphRun, read_messages
from maniple.api.protocols.langgraph.thread_routes import ThreadPath
from maniple.api.protocols.langgraph.transcripts import format_time
from maniple.api.protocols.run_choices import OpenBody
from maniple.api.state import ServiceOf
from maniple.runs import NotFound, RunRequest
from maniple.schedules import (
    ScheduleSpecification,
    ScheduleTiming,
    make_schedule,
    read_request,
    require_room,
    resumed_schedule,
)
from maniple.service import Service
from maniple.service.thread_views import get_thread
from maniple.store import Overlap, Schedule

router = keyed_router("langgraph", is_protocol=True)
_OVERLAPS: Mapping[str, Overlap] = {"enqueue": "queue", "interrupt": "cancel", "reject": "skip"}
_CronPath = Annotated[str, Path(max_length=100, description="The cron")]
_Cron = Annotated[str, Field(max_length=200, examples=["0 8 * * 1"])]
_Zone = Annotated[str, Field(max_length=100, examples=["Europe/Berlin"])]


class CronRun(LangGraphRun):
    """What the runs of a cron are asked, and when. Of the metadata, `name` can be set; threads stay."""

    end_time: str | None = None
    enabled: bool | None = None
    timezone: _Zone | None = None
    on_run_completed: Literal["delete", "keep"] | None = None

    def refuse_unsupported(self) -> None:
        """Raise `UnsupportedRequest` for the first field that promises what the service does not do."""
        super().refuse_unsupported()
        if self.end_time:
            raise UnsupportedRequest("end_time is not supported. Disable or delete the cron at that time.")
        if self.on_run_completed == "delete":
            raise UnsupportedRequest("on_run_completed: delete is not supported: threads stay.")
        if others := (self.metadata or {}).keys() - {"name"}:
            raise UnsupportedRequest(f"Of the metadata only name is stored. Leave out {', '.join(others)}.")
        if self.command is not None or self.asked_checkpoint is not None:
            raise UnsupportedRequest("A cron starts new runs. Leave out command and checkpoint.")
        if self.multitask_strategy == "rollback":
            raise UnsupportedRequest("multitask_strategy: rollback is not supported for crons.")

    @property
    def _is_continuing(self) -> bool:
        return False

    @property
    def overlap(self) -> Overlap | None:
        """What a tick does while the run before it has not ended."""
        return _OVERLAPS.get(self.multitask_strategy or "")

    @property
    def name(self) -> str:
        """The name of the schedule; "" if none is given."""
        return str((self.metadata or {}).get("name") or "")

    def read_request(self, service: Service, owner: str) -> RunRequest:
        """Return what each run starts from; raises what `accept_run` does for its input."""
        agent = find_agent(self.assistant_id, service)
        if self.input is None:
            raise InvalidRun("input is missing: send the messages that each run is asked.")
        messages, files = read_messages(self.input)
        if files:
            raise UnsupportedRequest("A cron takes text and pictures, no files: its runs have new threads.")
        return RunRequest(messages, None, self.read_options().as_options(agent), owner)


class CronCreate(CronRun):
    """A new cron; without a `timezone`, in UTC."""

    model_config = ConfigDict(extra="allow", title="LangGraphCronCreate")

    schedule: _Cron


class CronUpdate(CronRun):
    """What changes of a cron; `config` and `context` replace all options."""

    model_config = ConfigDict(extra="allow", title="LangGraphCronUpdate")

    assistant_id: str = Field("", max_length=200)
    schedule: _Cron | None = None


class CronFilter(OpenBody):
    """Which crons are counted."""

    assistant_id: str | None = None
    thread_id: str | None = None
    enabled: bool | None = None
    metadata: dict[str, Any] | None = None


class CronSearch(CronFilter):
    """Which crons are looked for, newest first. `select` has no effect: all fields are sent."""

    model_config = ConfigDict(extra="allow", title="LangGraphCronSearch")
    without_effect = ("select",)

    limit: int = Field(10, ge=1, le=1000)
    offset: int = Field(0, ge=0)
    sort_by: Literal["created_at"] | None = None
    sort_order: Literal["desc"] | None = None
    select: list[str] | None = None


class CronView(BaseModel):
    """A cron. `next_run_date` is null while it is disabled."""

    cron_id: str
    assistant_id: str
    thread_id: str | None
    on_run_completed: Literal["keep"] | None
    schedule: str
    timezone: str
    created_at: datetime
    updated_at: datetime
    payload: dict[str, Any]
    next_run_date: datetime | None
    metadata: dict[str, Any]
    enabled: bool
    end_time: datetime | None = None
    user_id: str | None = None


@router.post("/runs/crons", summary="Make a cron", responses=error_responses(404, 409))
async def create_cron(
    given: CronCreate, response: Response, service: ServiceOf, caller: CallerOf
) -> CronView:
    """Have runs started at the times of a cron expression, each on a new thread, which stays."""
    response.headers.update(describe_not_used(given.not_used))
    return await _create(service, caller.owner, given, None)


@router.post(
    "/threads/{thread_id}/runs/crons", summary="Make a cron of a thread", responses=error_responses(404, 409)
)
async def create_thread_cron(
    thread_id: ThreadPath, given: CronCreate, response: Response, service: ServiceOf, caller: CallerOf
) -> CronView:
    """The same, all of them on one thread."""
    response.headers.update(describe_not_used(given.not_used))
    thread = await get_thread(service.store, thread_id, caller.owner)
    return await _create(service, caller.owner, given, thread.thread_id)


@router.post("/runs/crons/search", summary="Find crons", responses=error_responses())
async def search_crons(
    search: CronSearch, response: Response, service: ServiceOf, caller: CallerOf
) -> list[CronView]:
    """The key's crons, newest first."""
    response.headers.update(describe_not_used(search.not_used))
    found = [one async for one in _find_all(service, caller.owner, search)]
    return [*islice(found, search.offset, search.offset + search.limit)]


@router.post("/runs/crons/count", summary="Count crons", responses=error_responses())
async def count_crons(
    response: Response,
    service: ServiceOf,
    caller: CallerOf,
    search: Annotated[CronFilter | None, Body()] = None,
) -> int:
    """The number of the key's crons."""
    wanted = search or CronFilter()
    response.headers.update(describe_not_used(wanted.not_used))
    return len([one async for one in _find_all(service, caller.owner, wanted)])


@router.patch("/runs/crons/{cron_id}", summary="Change a cron", responses=error_responses(404, 409))
async def update_cron(
    cron_id: _CronPath, given: CronUpdate, response: Response, service: ServiceOf, caller: CallerOf
) -> CronView:
    """Change a cron, disable or enable it. Times while it is disabled are not caught up with."""
    response.headers.update(describe_not_used(given.not_used))
    given.refuse_unsupported()
    await require_webhook(service, caller.owner, given.webhook)
    schedule = await _get(service, cron_id, caller.owner)
    changed = await asyncio.to_thread(_apply, given, schedule, service)
    if not await service.store.schedules.update(changed):
        raise NotFound("The cron does not exist.")
    return _describe(changed)


@router.delete(
    "/runs/crons/{cron_id}",
    status_code=204,
    summary="Delete a cron",
    response_class=Response,
    responses=error_responses(404),
)
async def delete_cron(cron_id: _CronPath, service: ServiceOf, caller: CallerOf) -> None:
    """Delete a cron. The runs that it has started stay, and go on."""
    schedule = await _get(service, cron_id, caller.owner)
    await service.store.schedules.delete(schedule.schedule_id, caller.owner)


async def _get(service: Service, cron_id: str, owner: str) -> Schedule:
    schedule = await service.store.schedules.get(cron_id, owner)
    if schedule is None or not schedule.cron:
        raise NotFound("The cron does not exist.")
    return schedule


async def _create(service: Service, owner: str, given: CronCreate, thread_id: str | None) -> CronView:
    given.refuse_unsupported()
    await require_webhook(service, owner, given.webhook)
    await require_room(service.store.schedules, owner)
    request = given.read_request(service, owner)
    timing = ScheduleTiming(given.schedule.strip(), "", given.timezone or "UTC")
    asked = ScheduleSpecification(timing, given.name, given.overlap or "queue", thread_id=thread_id)
    now = time.time()
    schedule = await asyncio.to_thread(make_schedule, asked, request, now, service.redactor)
    schedule = replace(schedule, paused_at=now if given.enabled is False else None)
    await service.store.schedules.add(schedule)
    return _describe(schedule)


def _apply(given: CronUpdate, schedule: Schedule, service: Service) -> Schedule:
    now = time.time()
    changed = replace(schedule, overlap=given.overlap or schedule.overlap)
    if given.name:
        changed = replace(changed, name=service.redactor.text(given.name))
    if given.input is not None or given.context or given.config or given.assistant_id:
        changed = replace(changed, request=_change_request(given, schedule, service))
    if given.schedule is not None or given.timezone is not None:
        timing = ScheduleTiming(
            (given.schedule or schedule.cron).strip(), "", given.timezone or schedule.zone
        )
        changed = replace(changed, cron=timing.cron, zone=timing.zone, next_at=timing.first_time(now))
    if given.enabled:
        return resumed_schedule(changed, now)
    return replace(changed, paused_at=changed.paused_at or now) if given.enabled is False else changed


def _change_request(given: CronUpdate, schedule: Schedule, service: Service) -> str:
    """Return the stored form of what the runs are asked; what is not given stays."""
    before = read_request(schedule)
    known: dict[str, Any] = {
        "assistant_id": given.assistant_id or before.options.agent or TEAM,
        "input": given.input or {"messages": [*before.messages]},
    }
    request = given.model_copy(update=known).read_request(service, schedule.owner)
    if not (given.context or given.config):
        request = replace(request, options=replace(before.options, agent=request.options.agent))
    return request.without_secrets(service.redactor)


async def _find_all(service: Service, owner: str, search: CronFilter) -> AsyncIterator[CronView]:
    for schedule in await service.store.schedules.list(owner):
        if schedule.cron and _matches(view := _describe(schedule), search):
            yield view


def _matches(view: CronView, search: CronFilter) -> bool:
    assistant = search.assistant_id
    return (
        assistant in (None, view.assistant_id, view.payload["assistant_id"])
        and search.thread_id in (None, view.thread_id)
        and search.enabled in (None, view.enabled)
        and all(view.metadata.get(key) == value for key, value in (search.metadata or {}).items())
    )


def _describe(schedule: Schedule) -> CronView:
    request = read_request(schedule)
    graph_id = request.options.agent or TEAM
    messages = [{"type": one.type, "content": one.content} for one in request.messages]
    is_enabled = schedule.paused_at is None
    has_next = is_enabled and schedule.next_at is not None
    return CronView.model_validate(
        {
            "cron_id": schedule.schedule_id,
            "assistant_id": make_assistant_id(graph_id),
            "thread_id": schedule.thread_name,
            "on_run_completed": None if schedule.thread_id else "keep",
            "schedule": schedule.cron,
            "timezone": schedule.zone,
            "created_at": format_time(schedule.created_at),
            "updated_at": format_time(schedule.created_at),
            "payload": {"assistant_id": graph_id, "input": {"messages": messages}, "schedule": schedule.cron},
            "next_run_date": format_time(schedule.next_at) if has_next else None,
            "metadata": {"name": schedule.name},
            "enabled": is_enabled,
        }
    )
