"""Runs continue in this process with and without followers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool

from maniple.agents.offers import Offer
from maniple.errors import StoreError
from maniple.events import Event, read_event
from maniple.graph import RunOptions
from maniple.runs import (
    EngineConfig,
    ExecutionEnvironment,
    InProcessEngine,
    NotFound,
    RunLimits,
    RunNotWaiting,
    RunRequest,
    ServiceStopping,
    ThreadBusy,
    TooManyRuns,
    open_engine,
)
from maniple.runs.teams import TeamSource
from maniple.store import Store, open_store
from tests.openai_server import SIMPLE, call, reply
from tests.team import Scripted, checked, data, scripted_team, status

pytestmark = pytest.mark.anyio
QUESTION = RunRequest([HumanMessage("1+3=?")])
HANGING = {"coordinator": [{"hang": True}]}


@dataclass
class Opened:
    it: Scripted
    store: Store
    engine: InProcessEngine

    async def events_of(self, run_id: str, after: int = 0) -> list[Event]:
        pages = [page async for page in self.engine.events(run_id, after)]
        return [read_event(record.type, record.data) for page in pages for record in page]

    async def ask(self, text: str = "1+3=?", **request: Any) -> str:
        accepted = await self.engine.submit(RunRequest([HumanMessage(text)], **request))
        return accepted.run.run_id

    async def answered(self, text: str = "1+3=?", **request: Any) -> list[tuple[str, dict[str, Any]]]:
        return checked(await self.events_of(await self.ask(text, **request)))

    async def calls(self, number: int) -> None:
        await asyncio.to_thread(self.it.server.wait_for, lambda stats: stats["active"] == number)


@pytest.fixture
def opening(tmp_path):
    @asynccontextmanager
    async def opened(
        script: dict[str, Any],
        rules: EngineConfig | None = None,
        environment: ExecutionEnvironment | None = None,
        load: Callable[[], Awaitable[None]] | None = None,
        **team: Any,
    ) -> AsyncIterator[Opened]:
        async with (
            open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store,
            scripted_team(script, checkpointer=store.checkpointer, **team) as it,
            open_engine(
                TeamSource(it.team, load=load) if load else it.team,
                store,
                kind="server",
                config=rules or EngineConfig(drain_seconds=0.1),
                environment=environment,
            ) as engine,
        ):
            yield Opened(it, store, engine)

    return opened


async def test_every_follower_receives_a_run_from_its_beginning(opening):
    async with opening(SIMPLE) as here:
        run_id = await here.ask()
        first, second = await asyncio.gather(here.events_of(run_id), here.events_of(run_id))
        late = await here.events_of(run_id, after=len(first) - 2)
    assert checked(first) == checked(second)
    assert late == first[-2:]


async def test_a_run_begins_at_once_and_its_models_are_called_when_they_are_loaded(opening):
    may_load, loads = asyncio.Event(), list[str]()

    async def load() -> None:
        loads.append("load")
        await may_load.wait()

    async with opening(SIMPLE, load=load) as here:
        run_id = await here.ask()
        first = await anext(page async for page in here.engine.events(run_id))
        called = here.it.server.stats["calls"]
        may_load.set()
        frames = checked(await here.events_of(run_id))
    assert (first[0].type, called, loads) == ("run", 0, ["load"])
    assert status(frames) == "completed"


async def test_numbers_begin_at_one_and_have_no_gap_while_it_runs_and_afterwards(opening):
    async with opening(SIMPLE) as here:
        run_id = await here.ask()
        live = [record async for page in here.engine.events(run_id) for record in page]
        await here.engine.status(run_id)
        kept = [record async for page in here.engine.events(run_id) for record in page]
    assert [record.number for record in live] == list(range(1, len(live) + 1))
    assert live == kept


async def test_the_outcome_of_a_run_is_stored_with_its_usage(opening):
    async with opening(SIMPLE) as here:
        run_id = await here.ask()
        await here.events_of(run_id)
        run = await here.engine.status(run_id)
        threads = await here.store.threads.list("")
    assert run.status == "completed"
    assert (run.usage.model_calls, run.usage.tool_calls) == (5, 1)
    assert run.created_at <= run.started_at <= run.ended_at
    assert [thread.title for thread in threads] == ["1+3=?"]


@pytest.mark.parametrize("role", ["coordinator", "planner", "coder", "reporter"])
async def test_cancelling_ends_the_model_call_and_closes_the_stream(opening, role):
    async with opening({**SIMPLE, role: [{"hang": True}]}) as here:
        run_id = await here.ask()
        await asyncio.to_thread(here.it.server.wait_for, lambda s: s["by_role"].get(role) == 1)
        async with asyncio.timeout(60):
            run = await here.engine.cancel(run_id)
        frames = checked(await here.events_of(run_id))
        await asyncio.to_thread(here.it.server.wait_for, lambda stats: stats["aborted"] == 1)
    assert (run.status, status(frames)) == ("cancelled", "cancelled")
    assert data(frames, "error") == []
    assert frames[-1][1]["messages"][0] == {"role": "user", "content": "1+3=?"}


async def test_cancelling_in_the_middle_of_a_fast_stream_is_never_lost(opening):
    fast = {"chunks": ["word "] * 5_000, "delay_seconds": 0.001}
    async with opening({**SIMPLE, "reporter": [fast]}) as here:
        for number in range(10):
            run_id = await here.ask()
            pieces, seen = 0, []
            async with asyncio.timeout(60):
                async for page in here.engine.events(run_id):
                    seen += [read_event(record.type, record.data) for record in page]
                    before, pieces = pieces, sum(event.type == "message" for event in seen)
                    if before < 6 + number <= pieces:
                        stopping = asyncio.create_task(here.engine.cancel(run_id))
                await stopping
            assert status(checked(seen)) == "cancelled"


async def test_a_run_whose_pieces_fail_as_it_is_cancelled_is_cancelled(opening):
    begun = asyncio.Event()

    async def python_repl_tool(code: str) -> str:
        """Run Python code."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise StoreError("The machine was taken apart.")

    toolbox = Offer({"coder": [StructuredTool.from_function(coroutine=python_repl_tool)]})
    async with opening({**SIMPLE, "coder": [call("python_repl_tool", code="1")]}, toolbox=toolbox) as here:
        run_id = await here.ask()
        async with asyncio.timeout(60):
            await begun.wait()
            run = await here.engine.cancel(run_id)
            frames = checked(await here.events_of(run_id))
    assert (run.status, status(frames)) == ("cancelled", "cancelled")
    assert "error" not in dict(frames)


async def test_what_is_over_is_not_cancelled_any_more(opening):
    async with opening(SIMPLE) as here:
        run_id = await here.ask()
        await here.events_of(run_id)
        assert (await here.engine.cancel(run_id)).status == "completed"


async def test_no_more_runs_than_allowed_are_taken(opening):
    async with opening(HANGING, EngineConfig(limits=RunLimits(under_way=1), drain_seconds=0)) as here:
        run_id = await here.ask()
        with pytest.raises(TooManyRuns, match="in a moment"):
            await here.ask()
        await here.engine.cancel(run_id)
        await here.engine.cancel(await here.ask())


async def test_one_key_cannot_take_the_places_of_others(opening):
    async with opening(HANGING, EngineConfig(limits=RunLimits(per_owner=1), drain_seconds=0)) as here:
        await here.ask(owner="ann")
        with pytest.raises(TooManyRuns, match="of this key"):
            await here.ask(owner="ann")
        await here.ask(owner="bob")


async def test_who_waits_for_a_place_begins_when_one_is_free(opening):
    async with opening({"coordinator": [{"hang": True}, reply("hello")]}, EngineConfig(working=1)) as here:
        first = await here.ask()
        await here.calls(1)
        second = await here.ask()
        assert (await here.engine.status(second)).status == "queued"
        await here.engine.cancel(first)
        assert status(checked(await here.events_of(second))) == "completed"


async def test_turns_on_one_thread_follow_one_another(opening):
    async with opening({"coordinator": [reply("first"), reply("second")]}) as here:
        run_ids = [await here.ask(text, thread_id="t") for text in ("a", "b")]
        told = [await here.events_of(run_id) for run_id in run_ids]
    assert [m.content for m in told[1][-1].messages] == ["a", "first", "b", "second"]
    assert "first" in str(here.it.server.requests[1]["messages"])


async def test_a_turn_cancelled_before_it_began_reports_that(opening):
    async with opening(HANGING) as here:
        first, second = [await here.ask(text, thread_id="t") for text in ("a", "b")]
        await here.calls(1)
        async with asyncio.timeout(60):
            await here.engine.cancel(second)
        assert status(checked(await here.events_of(second))) == "cancelled"
        await here.engine.cancel(first)


async def test_a_thread_of_another_owner_is_not_found(opening):
    async with opening({"coordinator": [reply("hello")]}) as here:
        run_id = await here.ask(thread_id="t", owner="ann")
        await here.events_of(run_id)
        for refused in (
            here.ask(thread_id="t", owner="bob"),
            here.engine.status(run_id, "bob"),
            here.engine.cancel(run_id, "bob"),
            here.engine.resume(run_id, "accept", owner="bob"),
        ):
            with pytest.raises(NotFound):
                await refused


async def test_a_busy_thread_may_refuse_the_next_run(opening):
    async with opening(HANGING) as here:
        run_id = await here.ask(thread_id="t")
        with pytest.raises(ThreadBusy):
            await here.ask(thread_id="t", when_busy="reject")
        await here.engine.cancel(run_id)


async def test_an_interrupting_run_replaces_the_other_and_sees_its_messages(opening):
    script = {**SIMPLE, "coder": [{"hang": True}, reply("4")]}
    async with opening(script) as here:
        first = await here.ask("first question", thread_id="t")
        await asyncio.to_thread(here.it.server.wait_for, lambda s: s["by_role"].get("coder") == 1)
        second = await here.ask("second question", thread_id="t", when_busy="interrupt")
        frames = checked(await here.events_of(second))
        assert (await here.engine.status(first)).status == "cancelled"
    assert status(frames) == "completed"
    assert "first question" in str(frames[-1][1]["messages"])


async def test_a_run_that_rolls_back_finds_nothing_of_the_other(opening):
    script = {**SIMPLE, "coordinator": [reply("hello"), *SIMPLE["coordinator"]], "coder": [{"hang": True}]}
    async with opening(script) as here:
        await here.answered("good morning", thread_id="t")
        first = await here.ask("first question", thread_id="t")
        await asyncio.to_thread(here.it.server.wait_for, lambda s: s["by_role"].get("coder") == 1)
        here.it.server.reset({"coordinator": [reply("done")]})
        frames = await here.answered("second question", thread_id="t", when_busy="rollback")
        assert (await here.engine.status(first)).status == "cancelled"
    contents = [message["content"] for message in frames[-1][1]["messages"]]
    assert contents == ["good morning", "hello", "second question", "done"]


async def test_a_plan_is_answered_and_the_run_goes_on_under_its_number(opening):
    async with opening(SIMPLE) as here:
        run_id = await here.ask(options=RunOptions(auto_accepted_plan=False))
        before = await here.events_of(run_id)
        assert (await here.engine.status(run_id)).status == "interrupted"
        [pause] = data(checked(before), "interrupt")
        accepted = await here.engine.resume(run_id, "accept", interrupt_id=pause["interrupt_id"])
        after = await here.events_of(run_id, accepted.after)
        run = await here.engine.status(run_id)
    assert accepted.run.run_id == run_id
    assert accepted.after == len(before)
    assert status(checked(after)) == "completed"
    assert (run.status, run.usage.model_calls) == ("completed", 5)


async def test_the_next_message_answers_a_thread_that_waits(opening):
    async with opening(SIMPLE) as here:
        run_id = await here.ask(thread_id="t", options=RunOptions(auto_accepted_plan=False))
        await here.events_of(run_id)
        accepted = await here.engine.submit(RunRequest([HumanMessage("accept")], thread_id="t"))
        assert accepted.run.run_id == run_id
        assert status(checked(await here.events_of(run_id, accepted.after))) == "completed"


async def test_an_answer_without_a_pending_question_is_refused(opening):
    async with opening(SIMPLE) as here:
        run_id = await here.ask(options=RunOptions(auto_accepted_plan=False))
        await here.events_of(run_id)
        with pytest.raises(RunNotWaiting, match="not wait for 'x'"):
            await here.engine.resume(run_id, "accept", interrupt_id="x")
        await here.events_of((await here.engine.resume(run_id, "accept")).run.run_id)
        with pytest.raises(RunNotWaiting, match="it is completed"):
            await here.engine.resume(run_id, "accept")


async def test_a_waiting_run_can_be_cancelled_and_its_thread_goes_on(opening):
    async with opening({**SIMPLE, "coordinator": [*SIMPLE["coordinator"], reply("hello")]}) as here:
        run_id = await here.ask(thread_id="t", options=RunOptions(auto_accepted_plan=False))
        await here.events_of(run_id)
        assert (await here.engine.cancel(run_id)).status == "cancelled"
        frames = await here.answered("never mind", thread_id="t")
    assert data(frames, "message")[0]["delta"] == {"content": "hello"}


async def test_a_stopping_engine_takes_no_more_runs(opening):
    async with opening(HANGING) as here:
        await here.engine.drain()
        with pytest.raises(ServiceStopping):
            await here.ask()


async def test_a_cancel_that_comes_while_the_end_is_written_changes_nothing(opening, monkeypatch):
    async with opening(SIMPLE) as here:
        change, written, go_on = here.store.runs.change, asyncio.Event(), asyncio.Event()

        async def slowly(run_id, **fields):
            if fields.get("status") == "completed":
                written.set()
                await go_on.wait()
            return await change(run_id, **fields)

        monkeypatch.setattr(here.store.runs, "change", slowly)
        run_id = await here.ask()
        await written.wait()
        cancelling = asyncio.create_task(here.engine.cancel(run_id))
        await asyncio.sleep(0)
        go_on.set()
        assert (await cancelling).status == "completed"


async def test_a_run_that_is_cancelled_while_the_engine_stops_has_ended(opening):
    async with opening(HANGING, EngineConfig(drain_seconds=5)) as here:
        run_id = await here.ask()
        await here.calls(1)
        stopping = asyncio.create_task(here.engine.drain())
        await asyncio.sleep(0)
        assert (await here.engine.cancel(run_id)).status == "cancelled"
        await stopping
        assert status(checked(await here.events_of(run_id))) == "cancelled"


async def test_a_call_with_an_integer_that_no_checkpoint_holds_ends_no_run(opening):
    script = {**SIMPLE, "coder": [call("python_repl_tool", code="print(1+3)", seed=2**70), reply("4")]}
    async with opening(script) as here:
        frames = await here.answered()
    assert status(frames) == "completed"
    assert str(2**70) in str(data(frames, "tool_call"))
