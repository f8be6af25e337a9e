"""What every engine does: each method of `Engine`, in one process and over the queue."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from maniple.events import Event, UserMessageAnswered, read_event
from maniple.graph import RunOptions
from maniple.runs import (
    Engine,
    EngineConfig,
    NotFound,
    NothingToRetry,
    PlanNotEditable,
    RunLimits,
    RunNotWaiting,
    RunNotWorking,
    RunRequest,
    ServiceStopping,
    ThreadBusy,
    TooManyRuns,
    open_engine,
)
from maniple.scope.inputs import PlanChange
from maniple.store import RunRecord, Store, open_store
from tests.openai_server import SIMPLE, reply
from tests.team import Scripted, checked, scripted_team

pytestmark = pytest.mark.anyio
HANGING = {"coordinator": [{"hang": True}]}
REVIEWED = RunOptions(auto_accepted_plan=False)


@dataclass
class Opened:
    it: Scripted
    store: Store
    engine: Engine

    async def events_of(self, run_id: str, after: int = 0) -> list[Event]:
        pages = [page async for page in self.engine.events(run_id, after)]
        return [read_event(record.type, record.data) for page in pages for record in page]

    async def ask(self, text: str = "1+3=?", **request: Any) -> RunRecord:
        return (await self.engine.submit(RunRequest([HumanMessage(text)], **request))).run

    async def ended(self, run_id: str) -> str:
        async with asyncio.timeout(30):
            await self.events_of(run_id)
        return (await self.engine.status(run_id)).status

    async def calls(self, number: int) -> None:
        await asyncio.to_thread(self.it.server.wait_for, lambda stats: stats["active"] == number)


Opening = Callable[..., AbstractAsyncContextManager[Opened]]


@pytest.fixture(params=["inprocess", "queue"])
def opening(request: pytest.FixtureRequest, tmp_path) -> Opening:
    if request.param == "queue":
        if find_spec("procrastinate") is None:
            pytest.skip("procrastinate is not installed: pip install maniple[postgres]")
        return _on_queue(request.getfixturevalue("open_postgres_again"))

    @asynccontextmanager
    async def opened(script: dict[str, Any], **rules: Any) -> AsyncIterator[Opened]:
        config = EngineConfig(**({"drain_seconds": 0.1} | rules))
        async with (
            open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store,
            scripted_team(script, checkpointer=store.checkpointer) as it,
            open_engine(it.team, store, kind="server", config=config) as engine,
        ):
            yield Opened(it, store, engine)

    return opened


def _on_queue(reopen: Any) -> Opening:
    from maniple.runs.queue.opening import open_queue

    @asynccontextmanager
    async def opened(script: dict[str, Any], **rules: Any) -> AsyncIterator[Opened]:
        config = EngineConfig(**({"drain_seconds": 0.1} | rules))
        async with (
            reopen(server=False) as store,
            reopen(server=False) as other,
            scripted_team(script, checkpointer=store.checkpointer) as it,
            scripted_team(script, checkpointer=other.checkpointer, server=it.server) as elsewhere,
            # Two processes in effect: one that is asked, and one that works.
            open_queue(elsewhere.team, other, role="worker", config=config),
            open_queue(it.team, store, role="api", config=config) as asked,
        ):
            yield Opened(it, store, asked.engine)

    return opened


async def test_a_run_is_followed_from_its_beginning_to_its_end_and_from_any_number(opening):
    async with opening(SIMPLE) as here:
        run = await here.ask()
        first = await here.events_of(run.run_id)
        late = await here.events_of(run.run_id, after=len(first) - 2)
        assert (await here.engine.status(run.run_id)).status == "completed"
    assert checked(first)
    assert late == first[-2:]


async def test_another_owner_finds_neither_run_nor_thread(opening):
    async with opening(SIMPLE) as here:
        run = await here.ask(owner="ann")
        await here.events_of(run.run_id)
        for asked in (here.engine.status, here.engine.cancel, here.engine.retry):
            with pytest.raises(NotFound):
                await asked(run.run_id, "bob")
        with pytest.raises(NotFound):
            await here.engine.delete_thread(run.thread_id, "bob")
        with pytest.raises(NotFound):
            await here.ask(owner="bob", thread_id=run.thread_id)


async def test_a_cancelled_run_ends_while_it_works_while_it_waits_and_while_it_asks(opening):
    async with opening(HANGING) as here:
        first = await here.ask()
        second = await here.ask(thread_id=first.thread_id)
        await here.calls(1)
        assert (await here.engine.cancel(second.run_id)).status == "cancelled"
        assert (await here.engine.cancel(first.run_id)).status == "cancelled"
        assert checked(await here.events_of(second.run_id))
        assert checked(await here.events_of(first.run_id))
    async with opening(SIMPLE) as here:
        run = await here.ask(options=REVIEWED)
        assert await here.ended(run.run_id) == "interrupted"
        assert (await here.engine.cancel(run.run_id)).status == "cancelled"


async def test_an_answer_continues_a_run_once_and_what_waits_behind_it_follows(opening):
    async with opening(SIMPLE) as here:
        run = await here.ask(options=REVIEWED)
        assert await here.ended(run.run_id) == "interrupted"
        answers = [here.engine.resume(run.run_id, "yes") for _ in range(4)]
        done = await asyncio.gather(*answers, return_exceptions=True)
        assert sorted(isinstance(one, RunNotWaiting) for one in done) == [False, True, True, True]
        assert await here.ended(run.run_id) == "completed"
        with pytest.raises(RunNotWaiting):
            await here.engine.resume(run.run_id, "yes")


async def test_the_next_message_on_a_thread_that_asks_is_its_answer(opening):
    async with opening(SIMPLE) as here:
        run = await here.ask(options=REVIEWED)
        assert await here.ended(run.run_id) == "interrupted"
        accepted = await here.engine.submit(RunRequest([HumanMessage("yes")], thread_id=run.thread_id))
        assert accepted.run.run_id == run.run_id
        assert await here.ended(run.run_id) == "completed"


async def test_the_runs_of_a_thread_work_one_after_another_in_order(opening):
    async with opening(SIMPLE) as here:
        first = await here.ask()
        others = [await here.ask(thread_id=first.thread_id) for _ in range(3)]
        ids = [first.run_id, *(one.run_id for one in others)]
        assert {await here.ended(one) for one in ids} == {"completed"}
        runs = [await here.engine.status(one) for one in ids]
    for before, after in pairwise(runs):
        assert (before.ended_at or 0) <= (after.started_at or 0) + 0.05


async def test_a_busy_thread_rejects_is_interrupted_or_is_rolled_back(opening):
    async with opening(HANGING) as here:
        first = await here.ask()
        await here.calls(1)
        with pytest.raises(ThreadBusy):
            await here.ask(thread_id=first.thread_id, when_busy="reject")
        second = await here.ask(thread_id=first.thread_id, when_busy="interrupt")
        assert (await here.engine.status(first.run_id)).status == "cancelled"
        third = await here.ask(thread_id=first.thread_id, when_busy="rollback")
        assert (await here.engine.status(second.run_id)).status == "cancelled"
        assert (await here.engine.cancel(third.run_id)).status == "cancelled"


async def test_limits_of_all_and_of_an_owner_refuse_a_run(opening):
    async with opening(HANGING, limits=RunLimits(2, 1)) as here:
        first = await here.ask(owner="ann")
        with pytest.raises(TooManyRuns):
            await here.ask(owner="ann")
        second = await here.ask(owner="bob")
        with pytest.raises(TooManyRuns):
            await here.ask(owner="cid")
        for run in (first, second):
            await here.engine.cancel(run.run_id, run.owner)


async def test_a_failed_run_is_retried_and_one_that_lacks_nothing_is_not(opening):
    script = {**SIMPLE, "coordinator": [{"status": 400}, *SIMPLE["coordinator"]]}
    async with opening(script) as here:
        run = await here.ask()
        assert await here.ended(run.run_id) == "failed"
        accepted = await here.engine.retry(run.run_id)
        assert accepted.after > 0
        assert await here.ended(run.run_id) == "completed"
        with pytest.raises(NothingToRetry):
            await here.engine.retry(run.run_id)


async def test_a_plan_under_review_is_changed_and_accepted_and_one_that_is_done_is_not(opening):
    async with opening(SIMPLE) as here:
        run = await here.ask(options=REVIEWED)
        assert await here.ended(run.run_id) == "interrupted"
        change = PlanChange("edit", 1, title="Another title")
        plan = await here.engine.change_plan(run.run_id, change)
        assert "Another title" in str(plan)
        assert await here.ended(run.run_id) == "completed"
        with pytest.raises(PlanNotEditable):
            await here.engine.change_plan(run.run_id, change)


async def test_a_message_to_a_run_that_works_is_stored_and_one_to_an_ended_run_refused(opening):
    async with opening(HANGING) as here:
        run = await here.ask()
        await here.calls(1)
        accepted = await here.engine.send_message(run.run_id, "and faster")
        steered = await here.ask("and shorter", thread_id=run.thread_id, when_busy="steer")
        stored = [one.input_id for one in await here.store.inputs.list_by_run(run.run_id)]
        await here.engine.cancel(run.run_id)
        with pytest.raises(RunNotWorking):
            await here.engine.send_message(run.run_id, "too late")
    assert accepted.message_id in stored
    assert (steered.run_id, len(stored)) == (run.run_id, 2)


async def test_a_message_to_a_run_at_work_is_decided_by_its_lead(opening):
    async with opening({**SIMPLE, "coordinator": [{"hang": True, **SIMPLE["coordinator"][0]}]}) as here:
        run = await here.ask()
        await here.calls(1)
        accepted = await here.engine.send_message(run.run_id, "and faster")
        here.it.server.release()
        events = await here.events_of(run.run_id)
    answers = [one for one in events if isinstance(one, UserMessageAnswered)]
    assert [(one.message_id, one.disposition) for one in answers] == [(accepted.message_id, "passed_on")]


async def test_a_message_that_the_run_does_not_decide_is_the_next_run(opening):
    async with opening({**SIMPLE, "coordinator": [reply("done", hang=True)]}) as here:
        run = await here.ask()
        await here.calls(1)
        accepted = await here.engine.send_message(run.run_id, "and then?")
        here.it.server.release()
        assert await here.ended(run.run_id) == "completed"
        assert (await here.engine.status(accepted.message_id)).thread_id == run.thread_id


async def test_a_thread_is_deleted_with_the_runs_at_work_on_it(opening):
    async with opening(HANGING) as here:
        run = await here.ask()
        await here.ask(thread_id=run.thread_id)
        await here.calls(1)
        await here.engine.delete_thread(run.thread_id)
        with pytest.raises(NotFound):
            await here.engine.status(run.run_id)
        await here.calls(0)


async def test_a_copy_of_a_thread_goes_on_by_itself_and_has_what_the_thread_had(opening):
    script = {"coordinator": [reply("One.", hang=True), reply("Two.")]}
    async with opening(script) as here:
        run = await here.ask("first")
        await here.calls(1)
        with pytest.raises(ThreadBusy):
            await here.engine.copy_thread(run.thread_id)
        with pytest.raises(NotFound):
            await here.engine.copy_thread("nope")
        here.it.server.release()
        assert await here.ended(run.run_id) == "completed"
        copy = await here.engine.copy_thread(run.thread_id)
        second = await here.ask("second", thread_id=copy.thread_id)
        assert await here.ended(second.run_id) == "completed"
        asked = str(here.it.server.requests[-1]["messages"])
        assert "first" in asked
        assert "One." in asked
        assert [one.run_id for one in await here.store.runs.list_by_thread(copy.thread_id, 9)] == [
            second.run_id,
            run.run_id,
        ]
        assert [one.run_id for one in await here.store.runs.list_by_thread(run.thread_id, 9)] == [run.run_id]


async def test_an_engine_that_drains_accepts_nothing(opening):
    async with opening(SIMPLE) as here:
        run = await here.ask()
        await here.ended(run.run_id)
        await here.engine.drain()
        with pytest.raises(ServiceStopping):
            await here.ask()
