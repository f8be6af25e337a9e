"""Runs that are started at their times: each once, whatever happens in between."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest
from langchain_core.messages import HumanMessage

from maniple.graph import RunOptions
from maniple.redaction import Redactor
from maniple.runs import RunRequest, TooManyRuns, open_engine
from maniple.runs.in_process import InProcessEngine
from maniple.schedules import (
    Scheduler,
    ScheduleSpecification,
    ScheduleTiming,
    make_schedule,
    resumed_schedule,
)
from maniple.store import Store, open_store
from tests.openai_server import BRIEF
from tests.runs.test_recovery import events_of
from tests.team import scripted_team

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
MIDNIGHT = 1_800_000_000.0 - 1_800_000_000.0 % 86_400
MINUTE = 60.0


@dataclass
class Scene:
    """A scheduler whose clock the test sets."""

    store: Store
    engine: InProcessEngine
    now: float = MIDNIGHT

    def __post_init__(self):
        self.scheduler = Scheduler(self.store, self.engine, lambda: self.now)

    async def add(self, cron="* * * * *", pauses=False, owner="", **more):
        asked = ScheduleSpecification(ScheduleTiming(cron), **more)
        options = RunOptions(auto_accepted_plan=not pauses)
        request = RunRequest([HumanMessage("1+3=?")], options=options, owner=owner)
        made = make_schedule(asked, request, self.now, Redactor(()))
        await self.store.schedules.add(made)
        return made.schedule_id

    async def add_once(self, moment):
        asked = ScheduleSpecification(ScheduleTiming(at=moment))
        made = make_schedule(asked, RunRequest([HumanMessage("1+3=?")]), MIDNIGHT, Redactor(()))
        await self.store.schedules.add(made)
        return made

    async def at(self, seconds):
        self.now = MIDNIGHT + seconds
        await self.scheduler.run_due()

    async def states(self, schedule_id):
        ticks = await self.store.schedules.list_ticks(schedule_id, 100)
        return [(one.tick - MIDNIGHT, one.state) for one in reversed(ticks)]

    async def runs(self, owner=""):
        return await self.store.runs.list(owner)

    async def end_all(self):
        for run in await self.runs():
            await events_of(self.engine, run.run_id)


@asynccontextmanager
async def opened(folder, **more):
    async with (
        open_store(folder / "maniple.db", folder / "artifacts", server=True) as store,
        scripted_team({**BRIEF, "by_history": True}, checkpointer=store.checkpointer) as it,
        open_engine(it.team, store, kind="server", **more) as engine,
    ):
        yield Scene(store, engine)


@pytest.fixture
async def scene(tmp_path):
    async with opened(tmp_path) as it:
        yield it


async def test_a_tick_starts_one_run_with_what_was_asked(scene):
    schedule_id = await scene.add("0 8 * * *", name="Sums")
    await scene.at(8 * 3600 - 1)
    assert await scene.runs() == []
    for seconds in (0, 1, 2):
        await scene.at(8 * 3600 + seconds)
    await scene.end_all()
    [run] = await scene.runs()
    assert run.status == "completed" and "1+3=?" in run.request
    assert await scene.states(schedule_id) == [(8 * 3600, "started")]
    schedule = await scene.store.schedules.get(schedule_id, "")
    assert schedule.next_at == MIDNIGHT + 32 * 3600 and schedule.name == "Sums"


async def test_two_schedulers_and_a_lost_answer_start_a_tick_once(scene):
    await scene.add()
    other = Scene(scene.store, scene.engine, MIDNIGHT + MINUTE)
    await asyncio.gather(scene.at(MINUTE), other.scheduler.run_due())
    [run] = await scene.runs()
    # As a process that was killed after the run was stored, and before the tick was.
    request = RunRequest([HumanMessage("1+3=?")], run_id=run.run_id)
    assert (await scene.engine.submit(request)).run.run_id == run.run_id
    assert len(await scene.runs()) == 1


async def test_a_tick_that_a_crash_left_pending_is_started_by_the_next_process(tmp_path):
    async with opened(tmp_path) as scene:
        schedule_id = await scene.add()

        async def killed(request):
            raise asyncio.CancelledError

        scene.engine.submit = killed
        with pytest.raises(asyncio.CancelledError):
            await scene.at(MINUTE)
        assert await scene.states(schedule_id) == [(MINUTE, "pending")]
    async with opened(tmp_path) as scene:
        await scene.at(MINUTE + 5)
        assert await scene.states(schedule_id) == [(MINUTE, "started")]
        assert len(await scene.runs()) == 1


@pytest.mark.parametrize(("catch_up", "runs"), [(True, 1), (False, 0)])
async def test_after_a_downtime_one_run_or_none_stands_for_all_that_was_missed(scene, catch_up, runs):
    schedule_id = await scene.add("0 * * * *", catch_up=catch_up)
    await scene.at(5.5 * 3600)
    last = "started" if catch_up else "missed"
    assert await scene.states(schedule_id) == [(3600, "missed"), (5 * 3600, last)]
    assert len(await scene.runs()) == runs
    assert all(one.reason for one in await scene.store.schedules.list_ticks(schedule_id, state="missed"))
    schedule = await scene.store.schedules.get(schedule_id, "")
    assert schedule.next_at == MIDNIGHT + 6 * 3600


async def test_what_is_due_at_the_end_of_a_downtime_is_no_second_run(scene):
    schedule_id = await scene.add("* * * * *", catch_up=True)
    await scene.at(3600 + 5)
    assert await scene.states(schedule_id) == [(MINUTE, "missed"), (3600, "started")]


async def test_a_tick_beside_a_run_that_has_not_ended_is_skipped_and_says_so(scene):
    schedule_id = await scene.add(pauses=True, overlap="skip")
    await scene.at(MINUTE)
    await scene.end_all()
    await scene.at(2 * MINUTE)
    assert await scene.states(schedule_id) == [(MINUTE, "started"), (2 * MINUTE, "skipped")]
    [tick, _] = await scene.store.schedules.list_ticks(schedule_id)
    assert "interrupted" in tick.reason


async def test_a_queued_tick_starts_when_the_run_before_has_ended(scene):
    schedule_id = await scene.add(pauses=True, overlap="queue")
    await scene.at(MINUTE)
    await scene.end_all()
    await scene.at(2 * MINUTE)
    assert await scene.states(schedule_id) == [(MINUTE, "started"), (2 * MINUTE, "pending")]
    [run] = await scene.runs()
    await scene.engine.resume(run.run_id, "accept")
    await events_of(scene.engine, run.run_id)
    await scene.at(2 * MINUTE + 30)
    assert await scene.states(schedule_id) == [(MINUTE, "started"), (2 * MINUTE, "started")]
    assert len(await scene.runs()) == 2


async def test_only_the_newest_ticks_wait_behind_a_run(scene):
    schedule_id = await scene.add(pauses=True, overlap="queue")
    await scene.at(MINUTE)
    await scene.end_all()
    for number in range(2, 15):
        await scene.at(number * MINUTE)
    states = [state for _, state in await scene.states(schedule_id)]
    assert states == ["started", *["skipped"] * 3, *["pending"] * 10]


async def test_a_tick_can_cancel_the_run_before(scene):
    schedule_id = await scene.add(pauses=True, overlap="cancel")
    await scene.at(MINUTE)
    await scene.end_all()
    await scene.at(2 * MINUTE)
    newest, first = await scene.runs()
    assert first.status == "cancelled" and newest.run_id != first.run_id
    assert [state for _, state in await scene.states(schedule_id)] == ["started", "started"]


async def test_a_tick_never_answers_a_run_that_waits_in_its_conversation(scene):
    waiting = await scene.engine.submit(
        RunRequest([HumanMessage("a")], "talk", RunOptions(auto_accepted_plan=False))
    )
    await events_of(scene.engine, waiting.run.run_id)
    schedule_id = await scene.add(thread_id="talk")
    await scene.at(MINUTE)
    assert [state for _, state in await scene.states(schedule_id)] == ["skipped"]
    assert (await scene.engine.status(waiting.run.run_id)).status == "interrupted"


async def test_runs_share_a_conversation_or_have_one_each(scene):
    await scene.add("1 0 * * *", thread_id="shared")
    await scene.add("1 0 * * *")
    await scene.add("2 0 * * *", thread_id="shared")
    await scene.at(MINUTE)
    await scene.end_all()
    await scene.at(2 * MINUTE)
    await scene.end_all()
    threads = [run.thread_id for run in await scene.runs()]
    assert threads.count("shared") == 2 and len(set(threads)) == 2


async def test_a_paused_schedule_starts_nothing_and_catches_up_with_nothing(scene):
    schedule_id = await scene.add()
    schedule = await scene.store.schedules.get(schedule_id, "")
    await scene.store.schedules.update(replace(schedule, paused_at=scene.now))
    await scene.at(10 * MINUTE)
    assert await scene.states(schedule_id) == []
    paused = await scene.store.schedules.get(schedule_id, "")
    await scene.store.schedules.update(resumed_schedule(paused, scene.now))
    await scene.at(11 * MINUTE)
    assert await scene.states(schedule_id) == [(11 * MINUTE, "started")]


async def test_a_single_time_that_came_in_a_pause_is_left_out(scene):
    made = await scene.add_once("2027-01-15T08:00:00Z")
    await scene.store.schedules.update(replace(made, paused_at=scene.now))
    later = made.next_at + 10 * MINUTE
    resumed = resumed_schedule(await scene.store.schedules.get(made.schedule_id, ""), later)
    await scene.store.schedules.update(resumed)
    await scene.at(later - MIDNIGHT)
    assert (resumed.next_at, await scene.runs()) == (None, [])
    early = resumed_schedule(replace(made, paused_at=scene.now), made.next_at - 1)
    assert early.next_at == made.next_at


async def test_a_schedule_whose_times_cannot_be_found_is_paused_and_the_others_go_on(scene):
    broken, sound = await scene.add(), await scene.add()
    schedule = await scene.store.schedules.get(broken, "")
    await scene.store.schedules.update(replace(schedule, zone="Europe/Nowhere"))
    for seconds in (MINUTE, 2 * MINUTE):
        await scene.at(seconds)
    await scene.end_all()
    assert [seconds for seconds, _ in await scene.states(sound)] == [MINUTE, 2 * MINUTE]
    [tick] = await scene.store.schedules.list_ticks(broken)
    assert tick.state == "failed" and "Europe/Nowhere" in tick.reason
    assert (await scene.store.schedules.get(broken, "")).paused_at == MIDNIGHT + MINUTE


async def test_a_single_time_is_due_once(scene):
    made = await scene.add_once("2027-01-15T08:00:00Z")
    for later in (-1, 0, 100, 90_000):
        await scene.at(made.next_at - MIDNIGHT + later)
    assert len(await scene.runs()) == 1
    assert (await scene.store.schedules.get(made.schedule_id, "")).next_at is None


async def test_a_refusal_that_passes_is_tried_again_for_an_hour(scene):
    schedule_id = await scene.add("1 0 * * *")
    submit = scene.engine.submit

    async def full(request):
        raise TooManyRuns("full")

    scene.engine.submit = full
    await scene.at(MINUTE)
    await scene.at(30 * MINUTE)
    assert await scene.states(schedule_id) == [(MINUTE, "pending")]
    scene.engine.submit = submit
    await scene.at(31 * MINUTE)
    assert await scene.states(schedule_id) == [(MINUTE, "started")]
    second = await scene.add("32 0 * * *")
    scene.engine.submit = full
    await scene.at(32 * MINUTE)
    await scene.at(100 * MINUTE)
    assert await scene.states(second) == [(32 * MINUTE, "failed")]


async def test_a_schedule_of_a_revoked_key_is_paused(scene):
    key, _ = await scene.store.keys.add("ann")
    schedule_id = await scene.add(owner=key.key_id)
    await scene.store.keys.revoke(key.key_id)
    await scene.at(MINUTE)
    assert await scene.states(schedule_id) == [(MINUTE, "failed")]
    assert (await scene.store.schedules.get(schedule_id, None)).paused_at is not None
    assert await scene.runs(key.key_id) == []


@pytest.mark.slow
async def test_sixty_ticks_with_three_ends_of_the_process_start_sixty_runs(tmp_path):
    schedule_id = ""
    for part in range(4):
        async with opened(tmp_path) as scene:
            schedule_id = schedule_id or await scene.add(overlap="queue")
            for minute in range(part * 15 + 1, part * 15 + 16):
                await scene.at(minute * MINUTE)
                await scene.end_all()
            if part == 3:
                await scene.at(3600 + 30)
                states = await scene.states(schedule_id)
                assert states == [(number * MINUTE, "started") for number in range(1, 61)]
                runs = await scene.store.runs.list("", 100)
                assert len({run.run_id for run in runs}) == 60
