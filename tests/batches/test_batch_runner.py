"""Items that are done as runs: each once, under one budget, and judged."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest
from langchain_core.messages import HumanMessage

from maniple.batches import (
    AnswerRule,
    BatchRunner,
    BatchSpecification,
    batch_runner,
    change_limits,
    make_batch,
    read_results,
    retry_batch,
)
from maniple.graph import RunOptions
from maniple.runs import RunRequest, TooManyRuns, open_engine
from maniple.runs.in_process import InProcessEngine
from maniple.scope.budget import Budget
from maniple.store import Store, open_store
from tests.openai_server import BRIEF
from tests.runs.test_recovery import events_of
from tests.store.samples import a_run, a_thread
from tests.team import scripted_team

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]


@dataclass
class Scene:
    store: Store
    engine: InProcessEngine

    def __post_init__(self):
        self.runner = BatchRunner(self.store, self.engine, "server")

    async def add(self, count, pauses=False, **more):
        request = RunRequest([HumanMessage("")], options=RunOptions(auto_accepted_plan=not pauses))
        tasks = [f"{n}+3=?" for n in range(count)]
        batch, items = make_batch(BatchSpecification(**more), tasks, request, "server", 1.0)
        await self.store.batches.add(batch, items)
        return batch

    async def finish(self, batch):
        async with asyncio.timeout(100):
            while await self.runner.advance(batch):
                for run in await self.store.runs.list("", 100):
                    if run.is_unfinished:
                        await events_of(self.engine, run.run_id)
        return (await self.store.batches.total(batch.batch_id)).counts


@asynccontextmanager
async def opened(folder):
    async with (
        open_store(folder / "maniple.db", folder / "artifacts", server=True) as store,
        scripted_team({**BRIEF, "by_history": True}, checkpointer=store.checkpointer) as it,
        open_engine(it.team, store, kind="server") as engine,
    ):
        yield Scene(store, engine)


@pytest.fixture
async def scene(tmp_path):
    async with opened(tmp_path) as it:
        yield it


async def test_each_item_is_one_run_with_a_result(scene):
    batch = await scene.add(5, parallel=2)
    await scene.runner.advance(batch)
    assert len(await scene.store.runs.list("")) == 2
    assert await scene.finish(batch) == {"accepted": 5}
    results = [one async for one in read_results(scene.store, batch)]
    assert [one["number"] for one in results] == [1, 2, 3, 4, 5]
    assert all(one["answer"] and one["input"] for one in results)
    runs = await scene.store.runs.list("")
    assert {one["run_id"] for one in results} == {run.run_id for run in runs}
    assert not any(RunRequest.of(run).options.may_ask for run in runs)
    assert not (await scene.store.batches.get(batch.batch_id, "")).is_open


async def test_an_answer_that_breaks_the_rule_is_tried_again_and_can_be_retried(scene):
    batch = await scene.add(2, attempts=2, rule=AnswerRule(pattern="never said"))
    assert await scene.finish(batch) == {"rejected": 2}
    assert len(await scene.store.runs.list("")) == 4
    [first, _] = await scene.store.batches.list_items(batch.batch_id)
    assert "never said" in first.reason and first.attempt == 2
    await retry_batch(scene.store.batches, batch)
    assert await scene.finish(batch) == {"rejected": 2}
    assert len(await scene.store.runs.list("")) == 8


async def test_no_item_is_started_when_the_budget_is_used_up(scene):
    batch = await scene.add(6, parallel=1, budget=Budget(model_calls=4))
    counts = await scene.finish(batch)
    assert counts["left_out"] >= 1 and sum(counts.values()) == 6
    items = await scene.store.batches.list_items(batch.batch_id, "left_out")
    assert all("budget" in one.reason for one in items)
    assert len(await scene.store.runs.list("")) == 6 - len(items)


async def test_a_retry_goes_on_after_the_end_of_the_budget_with_a_larger_one(scene):
    batch = await scene.add(4, parallel=1, budget=Budget(model_calls=4))
    assert (await scene.finish(batch))["left_out"] >= 1
    await retry_batch(scene.store.batches, batch)
    assert (await scene.finish(batch))["left_out"] >= 1  # what was used counts
    changed = await change_limits(scene.store.batches, batch, Budget(model_calls=100), 3)
    assert changed == replace(await scene.store.batches.get(batch.batch_id, ""), is_open=batch.is_open)
    await retry_batch(scene.store.batches, changed)
    assert await scene.finish(changed) == {"accepted": 4}
    assert (await scene.store.batches.get(batch.batch_id, "")).parallel == 3


async def test_a_batch_that_cannot_be_worked_on_does_not_stop_the_others(scene, caplog):
    broken = await scene.add(1)
    await scene.store.batches.set_limits(broken.batch_id, '{"no_limit": 1}', 1)
    sound = await scene.add(1)
    for _ in range(3):
        assert await scene.runner.advance_all()
    assert len(await scene.store.runs.list("")) == 1
    assert (await scene.store.batches.total(sound.batch_id)).counts == {"started": 1}
    assert (await scene.store.batches.total(broken.batch_id)).counts == {"waiting": 1}
    assert caplog.text.count(broken.batch_id) == 1  # it is tried again later


async def test_an_item_that_no_room_is_for_says_so_until_it_is_done(scene):
    batch = await scene.add(1)
    submit = scene.engine.submit

    async def refuse(request):
        raise TooManyRuns("There are 3 runs, which is the limit.")

    scene.engine.submit = refuse
    for _ in range(3):
        assert await scene.runner.advance(batch)
    [item] = await scene.store.batches.list_items(batch.batch_id)
    assert (item.state, item.attempt, "3 runs" in item.reason) == ("started", 1, True)
    scene.engine.submit = submit
    assert await scene.finish(batch) == {"accepted": 1}
    [item] = await scene.store.batches.list_items(batch.batch_id)
    assert (item.attempt, item.reason) == (1, "")


async def test_a_run_that_waits_for_a_person_fails_its_item(scene):
    batch = await scene.add(1, pauses=True)
    assert await scene.finish(batch) == {"failed": 1}
    [run] = await scene.store.runs.list("")
    assert run.status == "cancelled"


async def test_a_run_of_a_process_that_may_die_later_is_requested_again(scene, monkeypatch):
    monkeypatch.setattr(batch_runner, "REQUEST_SECONDS", 0.0)
    batch, requested = await scene.add(1), []

    async def driven_elsewhere(request):
        if not requested:
            made = a_run(await scene.store.threads.create(a_thread()), "another", status="running")
            await scene.store.runs.add(replace(made, run_id=request.run_id))
        requested.append(request.run_id)

    scene.engine.submit = driven_elsewhere
    for _ in range(3):
        assert await scene.runner.advance(batch)
    assert len(requested) == 3 and len(set(requested)) == 1


async def test_what_a_crash_cut_off_is_done_once(tmp_path):
    async with opened(tmp_path) as scene:
        batch = await scene.add(3, parallel=3)

        async def killed(request):
            raise asyncio.CancelledError

        submit, scene.engine.submit = scene.engine.submit, killed
        with pytest.raises(asyncio.CancelledError):
            await scene.runner.advance(batch)
        assert await scene.store.runs.list("") == []
        scene.engine.submit = submit
        await scene.runner.advance(batch)
    async with opened(tmp_path) as scene:
        assert await scene.finish(batch) == {"accepted": 3}
        assert len(await scene.store.runs.list("")) == 3
