"""`maniple schedule`: runs that the server starts at their times, without opening the team."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import typer

from maniple.cli.options import ConfigOption, finish, parse_budget, read_settings
from maniple.types import Depth, Effort

if TYPE_CHECKING:
    from maniple.config import Settings
    from maniple.runs import RunRequest
    from maniple.schedules import ScheduleSpecification
    from maniple.store import Overlap, Schedule, ScheduleTick, Store


schedules = typer.Typer(
    name="schedule", no_args_is_help=True, help="Have the server start runs at given times."
)
_IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The schedule's id, or its beginning.", show_default=False)
]
_ZoneOption = Annotated[
    str, typer.Option("--zone", help="Time zone, such as Europe/Berlin.  [default: this machine's]")
]
_CronOption = Annotated[
    str, typer.Option(help="Minute, hour, day of the month, month, day of the week.", show_default=False)
]


@schedules.command("add")
def add_schedule(  # noqa: PLR0913 - typer reads the options from the signature
    task: Annotated[list[str], typer.Argument(metavar="TASK", help="What each run is asked.")],
    cron: _CronOption = "",
    at: Annotated[
        str, typer.Option(help="One date and time, such as 2030-01-31T08:00.", show_default=False)
    ] = "",
    zone: _ZoneOption = "",
    name: Annotated[str, typer.Option(help="Name.  [default: the task]", show_default=False)] = "",
    overlap: Annotated[
        str, typer.Option(help="If the run before has not ended: skip, queue or cancel (that run).")
    ] = "skip",
    catch_up: Annotated[
        bool, typer.Option(help="After a downtime, start one run for all that was missed.")
    ] = True,
    same_thread: Annotated[
        bool, typer.Option("--same-thread", help="All runs continue one conversation.")
    ] = False,
    depth: Annotated[Depth | None, typer.Option(help="How far to research.", show_default=False)] = None,
    effort: Annotated[
        Effort | None, typer.Option(help="How much the models are to reason.", show_default=False)
    ] = None,
    budget: Annotated[
        str, typer.Option(help="Limits of each run: tokens=200k,seconds=600.", show_default=False)
    ] = "",
    config: ConfigOption = None,
) -> None:
    """Add a schedule and print its id.

    \b
    Examples:
      maniple schedule add --cron "0 8 * * 1" "Summarise the news on solar power of last week"
      maniple schedule add --cron "*/30 9-17 * * MON-FRI" --zone Europe/Berlin "…"
      maniple schedule add --at 2030-01-31T08:00 --budget tokens=200k "…"
      maniple schedule add --cron "0 7 * * *" --same-thread --overlap queue "…"

    \b
    maniple serve starts the runs, each time once; without a running server nothing is started.
    When summer time begins, a time of day that does not exist comes at the end of the gap; when
    it ends, a time of day that comes twice is due once. Hours or minutes that begin with * follow
    real time.

    \b
    Exit status: 0 added, 1 it cannot be stored, 2 wrong usage or settings.
    """
    from maniple.cli.process import WrongUsage
    from maniple.schedules import ScheduleSpecification, ScheduleTiming, local_zone

    settings = read_settings(config)
    text = " ".join(task).encode("utf-8", "replace").decode().strip()
    if not text:
        raise typer.BadParameter("the task is empty.", param_hint="TASK")
    if overlap not in ("skip", "queue", "cancel"):
        raise typer.BadParameter("is skip, queue or cancel.", param_hint="--overlap")
    timing = ScheduleTiming(cron.strip(), at.strip(), zone or local_zone())
    chosen: Overlap = overlap
    asked = ScheduleSpecification(timing, name, chosen, catch_up, str(uuid4()) if same_thread else None)
    try:
        request = _make_request(text, depth, effort, budget, settings)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--budget") from error

    async def add() -> int:
        from maniple.schedules import InvalidSchedule

        try:
            return await _add(settings, asked, request)
        except InvalidSchedule as error:
            raise WrongUsage(str(error)) from error

    finish(add())


@schedules.command("list")
def list_schedules(
    json: Annotated[bool, typer.Option("--json", help="Print a JSON array.")] = False,
    config: ConfigOption = None,
) -> None:
    """List the schedules, newest first, each with its next time.

    \b
    Examples:
      maniple schedule list
      maniple schedule list --json | jq -r '.[].schedule_id'

    \b
    Exit status: 0 listed, even if there are none, 1 they cannot be read, 2 wrong settings.
    """
    finish(_list(read_settings(config), as_json=json))


@schedules.command("show")
def show_schedule(
    schedule: _IdArgument,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    config: ConfigOption = None,
) -> None:
    """Print a schedule, its next times, and what became of its newest ticks.

    \b
    Examples:
      maniple schedule show 1a2b3c4d

    \b
    Exit status: 0 printed, 1 it cannot be read, 2 there is no such schedule, or wrong settings.
    """
    finish(_show(read_settings(config), schedule, as_json=json))


@schedules.command("pause")
def pause_schedule(schedule: _IdArgument, config: ConfigOption = None) -> None:
    """Pause a schedule; a run of it that works goes on.

    \b
    Examples:
      maniple schedule pause 1a2b3c4d

    \b
    Exit status: 0 paused, 1 it cannot be stored, 2 there is no such schedule, or wrong settings.
    """
    finish(_change(read_settings(config), schedule, pauses=True))


@schedules.command("resume")
def resume_schedule(schedule: _IdArgument, config: ConfigOption = None) -> None:
    """Let a paused schedule go on; the times of the pause are left out.

    \b
    Examples:
      maniple schedule resume 1a2b3c4d

    \b
    Exit status: 0 it goes on, 1 it cannot be stored, 2 there is no such schedule, or wrong
    settings.
    """
    finish(_change(read_settings(config), schedule, pauses=False))


@schedules.command("remove")
def remove_schedule(schedule: _IdArgument, config: ConfigOption = None) -> None:
    """Remove a schedule; its runs and conversations stay.

    \b
    Examples:
      maniple schedule remove 1a2b3c4d

    \b
    Exit status: 0 removed, 1 it cannot be stored, 2 there is no such schedule, or wrong settings.
    """
    finish(_remove(read_settings(config), schedule))


@schedules.command("next")
def show_next(
    schedule: Annotated[
        str, typer.Argument(metavar="[ID]", help="The schedule; without one, --cron.", show_default=False)
    ] = "",
    cron: _CronOption = "",
    zone: _ZoneOption = "",
    count: Annotated[int, typer.Option(min=1, max=100, help="How many times.")] = 5,
    config: ConfigOption = None,
) -> None:
    """Print the next times of a schedule, or of a cron expression to try it.

    \b
    Examples:
      maniple schedule next 1a2b3c4d --count 10
      maniple schedule next --cron "0 8 1 * *" --zone Europe/Berlin

    \b
    Exit status: 0 printed, 1 it cannot be read, 2 wrong usage, or there is no such schedule.
    """
    from maniple.schedules import local_zone

    if bool(schedule) == bool(cron):
        raise typer.BadParameter("give either a schedule or --cron.", param_hint="ID")
    finish(_next(read_settings(config), schedule, (cron, zone or local_zone()), count))


def _make_request(
    text: str, depth: Depth | None, effort: Effort | None, budget: str, settings: "Settings"
) -> "RunRequest":
    from langchain_core.messages import HumanMessage

    from maniple.graph import RunOptions
    from maniple.runs import RunRequest
    from maniple.scope.budget import Budget

    limits = parse_budget(budget, settings.models) if budget else Budget()
    # Nobody is there to answer when the time comes.
    options = RunOptions(depth=depth or "", effort=effort or "", may_ask=False)
    return RunRequest([HumanMessage(text)], options=options, budget=limits)


async def _add(settings: "Settings", asked: "ScheduleSpecification", request: "RunRequest") -> int:
    from maniple.cli.render import Consoles
    from maniple.cli.store_admin import open_database
    from maniple.config.secrets import redactor_of
    from maniple.schedules import make_schedule, require_room

    schedule = await asyncio.to_thread(make_schedule, asked, request, time.time(), redactor_of(settings))
    async with open_database(settings) as store:
        await require_room(store.schedules, schedule.owner)
        await store.schedules.add(schedule)
    Consoles.of_this_process().note(f"Added; next on {_shown(schedule.next_at, schedule.zone)}.")
    print(schedule.schedule_id)
    return 0


async def _list(settings: "Settings", *, as_json: bool) -> int:
    from maniple.cli.render import Consoles
    from maniple.cli.store_admin import TERMINAL_OWNER, open_database
    from maniple.cli.text import clean, json_line

    async with open_database(settings) as store:
        found = await store.schedules.list(TERMINAL_OWNER)
    if as_json:
        print(json_line([_data(one) for one in found]))
    for one in () if as_json else found:
        print(clean(_line(one)))
    if not found and not as_json:
        Consoles.of_this_process().note("There are no schedules. Add one with maniple schedule add.")
    return 0


async def _show(settings: "Settings", name: str, *, as_json: bool) -> int:
    from maniple.cli.store_admin import open_database
    from maniple.cli.text import clean, json_line
    from maniple.schedules import read_request

    async with open_database(settings) as store:
        schedule = await _find(store, name)
        ticks = await store.schedules.list_ticks(schedule.schedule_id)
    times = await asyncio.to_thread(_times, schedule, 5)
    request = read_request(schedule)
    text = request.messages[-1].text
    chosen = {"depth": request.options.depth, "effort": request.options.effort}
    if as_json:
        found = {"task": text, **chosen, "next_times": times, "ticks": _tick_data(ticks)}
        print(json_line({**_data(schedule), **found}))
        return 0
    options = "".join(f"; {name} {value}" for name, value in chosen.items() if value)
    rules = f"overlap {schedule.overlap}, {'catches up' if schedule.catch_up else 'does not catch up'}"
    lines = [_line(schedule), f"{rules}; {_describe_thread(schedule)}{options}", "", text, ""]
    lines += [f"next     {_shown(at, schedule.zone)}" for at in times]
    lines += [
        f"{one.state:8} {_shown(one.tick, schedule.zone)}  {one.reason or one.run_id}".rstrip()
        for one in ticks
    ]
    print(clean("\n".join(lines)))
    return 0


async def _change(settings: "Settings", name: str, *, pauses: bool) -> int:
    from maniple.cli.render import Consoles
    from maniple.cli.store_admin import open_database
    from maniple.schedules import resumed_schedule

    now = time.time()
    async with open_database(settings) as store:
        schedule = await _find(store, name)
        changed = replace(schedule, paused_at=schedule.paused_at or now) if pauses else None
        if changed is None:
            changed = await asyncio.to_thread(resumed_schedule, schedule, now)
        await store.schedules.update(changed)
    Consoles.of_this_process().note(f"Schedule {schedule.schedule_id[:8]} {_describe_state(changed)}.")
    return 0


def _describe_state(schedule: "Schedule") -> str:
    if schedule.paused_at is not None:
        return "is paused"
    if schedule.next_at is None:
        return "is over: its last time has passed"
    return f"goes on; next on {_shown(schedule.next_at, schedule.zone)}"


async def _remove(settings: "Settings", name: str) -> int:
    from maniple.cli.render import Consoles
    from maniple.cli.store_admin import open_database

    async with open_database(settings) as store:
        schedule = await _find(store, name)
        await store.schedules.delete(schedule.schedule_id, schedule.owner)
    Consoles.of_this_process().note(f"Schedule {schedule.schedule_id[:8]} is removed; its runs stay.")
    return 0


async def _next(settings: "Settings", name: str, expression: tuple[str, str], count: int) -> int:
    from maniple.cli.process import WrongUsage
    from maniple.cli.store_admin import open_database
    from maniple.schedules import InvalidSchedule, list_next_times

    cron, zone = expression
    if not name:
        try:
            times = await asyncio.to_thread(list_next_times, cron, zone, time.time(), count)
        except InvalidSchedule as error:
            raise WrongUsage(str(error)) from error
    else:
        async with open_database(settings) as store:
            schedule = await _find(store, name)
        zone = schedule.zone
        times = await asyncio.to_thread(_times, schedule, count)
    for at in times:
        print(_shown(at, zone))
    return 0


async def _find(store: "Store", name: str) -> "Schedule":
    from maniple.cli.process import WrongUsage
    from maniple.cli.store_admin import TERMINAL_OWNER

    found = [
        one for one in await store.schedules.list(TERMINAL_OWNER) if name and one.schedule_id.startswith(name)
    ]
    if len(found) != 1:
        problem = f"{len(found)} schedules begin with" if found else "There is no schedule"
        raise WrongUsage(f"{problem} {name!r}. List them with maniple schedule list.")
    return found[0]


def _times(schedule: "Schedule", count: int) -> list[float]:
    """Return the next times of a schedule that is not paused."""
    from maniple.schedules import list_next_times

    first = schedule.next_at
    if first is None or schedule.paused_at is not None:
        return []
    more = count - 1 if schedule.cron else 0
    return [first, *(list_next_times(schedule.cron, schedule.zone, first, more) if more else [])]


def _line(schedule: "Schedule") -> str:
    from maniple.cli.text import one_line

    if schedule.paused_at is not None:
        state = "paused"
    elif schedule.next_at is None:
        state = "over"
    else:
        state = f"next {_shown(schedule.next_at, schedule.zone)}"
    timing = f"{schedule.cron or 'once'} ({schedule.zone})"
    return f"{schedule.schedule_id[:8]}  {timing}  {state}  {one_line(schedule.name, 60)}"


def _describe_thread(schedule: "Schedule") -> str:
    return f"conversation {schedule.thread_id}" if schedule.thread_id else "a conversation for each run"


def _data(schedule: "Schedule") -> dict[str, Any]:
    names = ("schedule_id", "name", "cron", "zone", "overlap", "catch_up", "thread_id", "next_at")
    return {**{name: getattr(schedule, name) for name in names}, "paused": schedule.paused_at is not None}


def _tick_data(ticks: Sequence["ScheduleTick"]) -> list[dict[str, Any]]:
    names = ("tick", "state", "run_id", "reason")
    return [{name: getattr(one, name) for name in names} for one in ticks]


def _shown(at: float | None, zone: str) -> str:
    """Return a time for people, in UTC if this machine does not know the zone."""
    from maniple.schedules import InvalidSchedule, load_zone

    if at is None:
        return "never"
    try:
        known = load_zone(zone)
    except InvalidSchedule:
        known = UTC
    return datetime.fromtimestamp(at, known).strftime("%a %Y-%m-%d %H:%M %Z")
