"""What the runs of a key use is counted together, once, and against the last 24 hours."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from langchain_core.messages import HumanMessage

from maniple.errors import BudgetExhausted, StoreFull
from maniple.runs.recovery import recover_orphaned_runs
from maniple.runs.request import RunRequest
from maniple.runs.usage import DAY_SECONDS, DailyLimitReached, KeyQuota, QuotaRegistry
from maniple.scope.budget import UsageMeter
from maniple.store import KeyLimits, RunRecord, RunUsage, Store, open_store
from tests.openai_server import SIMPLE, serving
from tests.runs.test_recovery import events_of, process
from tests.store.samples import a_run, a_thread

pytestmark = pytest.mark.anyio
NOON = 1_800_000_000.0
HOUR = 3_600.0
YEAR = 365 * DAY_SECONDS
PROMPT = [HumanMessage("word " * 20)]


@dataclass
class Key:
    """A key in a store, and a clock that the test sets."""

    store: Store
    owner: str
    now: float = NOON

    def __post_init__(self) -> None:
        self.quotas = QuotaRegistry(self.store, clock=lambda: self.now)

    async def run(self, calls: int = 0, at: float | None = None) -> RunRecord:
        thread = await self.store.threads.create(a_thread(self.owner))
        used = RunUsage(model_calls=calls)
        return await self.store.runs.add(a_run(thread, at=self.now if at is None else at, usage=used))

    async def working(self, calls: int = 0) -> tuple[RunRecord, UsageMeter]:
        run = await self.run(calls)
        allowance = await self.quotas.refresh_owner(self.owner)
        meter = UsageMeter(used=run.usage, shared=allowance)
        allowance.attach(run.run_id, meter)
        meter.start()
        return run, meter

    async def calls(self) -> float:
        return (await self.quotas.refresh_owner(self.owner)).used["model_calls"]


@pytest.fixture
async def key(tmp_path: Path) -> AsyncIterator[Key]:
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
        made, _ = await store.keys.add("ann", KeyLimits(max_runs=2, daily_model_calls=5))
        yield Key(store, made.key_id)


def ask(meter: UsageMeter) -> None:
    call = uuid4()
    meter.begin(call, PROMPT, {})
    meter.end(call, None)


async def test_runs_at_once_share_what_is_left_of_the_day(key: Key):
    await key.run(calls=2)
    (_, one), (_, other) = await key.working(), await key.working()
    for meter in (one, other, one):
        ask(meter)
    for meter in (one, other):
        with pytest.raises(BudgetExhausted, match="limit of 5 model calls"):
            ask(meter)
    with pytest.raises(DailyLimitReached, match="calls of a day: 5 of 5"):
        key.quotas.of(key.owner).raise_if_used_up()
    assert one.used.model_calls + other.used.model_calls == 3


async def test_the_prompts_under_way_of_other_runs_are_reserved(key: Key):
    made, _ = await key.store.keys.add("bob", KeyLimits(daily_tokens=45))
    bob = Key(key.store, made.key_id)
    (_, one), (_, other) = await bob.working(), await bob.working()
    one.begin(uuid4(), PROMPT, {})
    with pytest.raises(BudgetExhausted, match="daily limit of 45 tokens"):
        other.begin(uuid4(), PROMPT, {})


@pytest.mark.parametrize("before", [0, 2])
async def test_what_a_run_used_counts_once_before_and_after_its_end(key: Key, before):
    run, meter = await key.working(before)
    ask(meter)
    assert await key.calls() == before + 1
    async with key.quotas.of(key.owner).writing(run.run_id):
        await key.store.runs.change(run.run_id, usage=meter.used)
    assert key.quotas.of(key.owner).used["model_calls"] == before + 1
    assert await key.calls() == before + 1


async def test_a_reading_waits_while_an_end_is_written(key: Key):
    run, meter = await key.working()
    ask(meter)
    async with key.quotas.of(key.owner).writing(run.run_id):
        reading = asyncio.create_task(key.calls())
        await key.store.runs.change(run.run_id, usage=meter.used)
        await key.store.keys.list()  # by now the reading has found its key, too
        assert not reading.done()
    assert await reading == 1


async def test_an_end_that_could_not_be_written_counts_until_the_run_is_let_go(key: Key):
    run, meter = await key.working()
    allowance = key.quotas.of(key.owner)
    ask(meter)
    with pytest.raises(StoreFull):
        async with allowance.writing(run.run_id):
            raise StoreFull("no room")
    assert await key.calls() == 1
    allowance.forget(run.run_id, UsageMeter())
    assert await key.calls() == 1, "another one drives it by now"
    allowance.forget(run.run_id, meter)
    assert await key.calls() == 0


async def test_what_was_deleted_is_not_given_back(key: Key):
    key.now = a_thread().created_at  # the store forgets what is long past by its own clock
    run = await key.run(calls=5)
    await key.store.threads.delete(run.thread_id)
    with pytest.raises(DailyLimitReached):
        (await key.quotas.refresh_owner(key.owner)).raise_if_used_up()


@pytest.mark.parametrize(
    ("jump", "later", "counted"),
    [
        (0, 0, 5),
        (0, DAY_SECONDS - 1, 5),
        (0, DAY_SECONDS, 0),
        (-YEAR, 0, 0),  # a clock that was a year ahead freezes nobody for a year
        (-HOUR, 0, 0),
        (-HOUR, HOUR, 5),
        (-HOUR, HOUR + DAY_SECONDS, 0),
        (YEAR, 0, 0),
    ],
)
async def test_a_clock_jump_affects_a_quota_for_at_most_a_day(key: Key, jump, later, counted):
    await key.run(calls=5)
    key.now += jump + later
    assert await key.calls() == counted
    again = await key.run(calls=5)
    with pytest.raises(DailyLimitReached):
        (await key.quotas.refresh_owner(key.owner)).raise_if_used_up()
    newest = again.created_at if jump == -YEAR else max(again.created_at, NOON)
    key.now = newest + DAY_SECONDS
    assert await key.calls() == 0


async def test_who_has_no_daily_limits_is_never_added_up(key: Key, monkeypatch):
    monkeypatch.setattr(key.store.runs, "sum_usage", None)
    free, _ = await key.store.keys.add("free", KeyLimits(max_runs=1))
    for owner in ("", "nobody", free.key_id):
        allowance: KeyQuota = await key.quotas.refresh_owner(owner)
        allowance.raise_if_used_up()
        assert [*allowance.levels(model_calls=1e9)] == []
    assert key.quotas.of(free.key_id).limits.max_runs == 1


async def test_a_run_that_was_left_behind_goes_on_within_the_day(tmp_path: Path):
    with serving({**SIMPLE, "coder": [{"hang": True}]}) as server:
        async with process(tmp_path, server) as (engine, store):
            made, _ = await store.keys.add("ann", KeyLimits(daily_model_calls=3))
            request = RunRequest([HumanMessage("1+3=?")], owner=made.key_id)
            run_id = (await engine.submit(request)).run.run_id
            await asyncio.to_thread(server.wait_for, lambda stats: stats["by_role"].get("coder") == 1)
        server.reset(SIMPLE)
        async with process(tmp_path, server) as (engine, _):
            await events_of(engine, run_id)
            run = await engine.status(run_id, made.key_id)
            with pytest.raises(DailyLimitReached):
                await engine.submit(request)
    assert run.status == "budget_exhausted"
    assert server.stats["by_role"] == {"coder": 1, "reporter": 1}
    assert "limit of 3 model calls" in str(server.requests[-1]["messages"])


async def test_a_run_whose_end_had_to_be_written_later_counts_once(tmp_path: Path, monkeypatch):
    with serving({**SIMPLE, "by_history": True}) as server:
        async with process(tmp_path, server) as (engine, store):
            made, _ = await store.keys.add("ann", KeyLimits(daily_model_calls=9))
            request = RunRequest([HumanMessage("1+3=?")], owner=made.key_id)
            with monkeypatch.context() as full:
                full.setattr(store.runs, "change", without_end(store.runs.change))
                run_id = (await engine.submit(request)).run.run_id
                [task] = [one for one in asyncio.all_tasks() if one.get_name() == f"run {run_id}"]
                with pytest.raises(StoreFull):
                    await events_of(engine, run_id)
                await asyncio.wait([task], timeout=60)
            await recover_orphaned_runs(engine.tasks, "server")
            assert (await engine.status(run_id, made.key_id)).usage.model_calls == 5
            second = (await engine.submit(request)).run.run_id  # and is not refused
            await events_of(engine, second)


def without_end(change):
    async def changed(run_id: str, **fields):
        if fields.get("status") == "completed":
            raise StoreFull("no room")
        return await change(run_id, **fields)

    return changed
