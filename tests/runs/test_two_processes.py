"""Two programs with one store open: a terminal and a server on the same conversation."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from maniple.errors import StoreBusy, StoreError
from maniple.graph import RunOptions
from maniple.runs import AcceptedRun, EngineConfig, RunNotWaiting, ThreadBusy, open_engine
from maniple.runs.in_process import Kind
from maniple.store import RunRecord, open_store
from maniple.store.sqlite.tables import SqliteRuns
from tests.openai_server import SIMPLE, OpenAIServer, reply, serving
from tests.runs.test_engine import Opened
from tests.team import checked, scripted_team, status

pytestmark = pytest.mark.anyio
SLOW = {"coordinator": [{"hang": True}]}
QUICK = {"coordinator": [reply("Hello!")]}


@asynccontextmanager
async def program(
    folder: Path, server: OpenAIServer, kind: Kind, rules: EngineConfig | None = None
) -> AsyncIterator[Opened]:
    async with (
        open_store(folder / "maniple.db", folder / "artifacts", server=kind == "server") as store,
        scripted_team({}, server=server, checkpointer=store.checkpointer) as it,
        open_engine(it.team, store, kind=kind, config=rules or EngineConfig(drain_seconds=0)) as engine,
    ):
        yield Opened(it, store, engine)


@asynccontextmanager
async def both(folder: Path, script: dict) -> AsyncIterator[tuple[Opened, Opened]]:
    with serving(script) as model:
        async with program(folder, model, "server") as served, program(folder, model, "chat") as chat:
            yield served, chat


async def test_a_run_waits_until_another_program_has_left_its_thread(tmp_path):
    async with both(tmp_path, SLOW) as (served, chat):
        first = await chat.ask("first", thread_id="t")
        await chat.calls(1)
        second = await served.ask("second", thread_id="t")
        chat.it.server.reset(QUICK)
        async with asyncio.timeout(60):
            async for _ in served.engine.events(second):
                break
        assert (await served.engine.status(second)).status == "queued"
        assert served.it.server.stats["calls"] == 0
        await chat.engine.cancel(first)
        told = checked(await served.events_of(second))
    assert status(told) == "completed"
    assert [message["content"] for message in told[-1][1]["messages"]] == ["first", "second", "Hello!"]


async def test_turns_of_two_programs_never_overlap(tmp_path):
    async with both(tmp_path, {"coordinator": [{"chunks": ["Hel", "lo!"], "delay_seconds": 0.01}]}) as (
        served,
        chat,
    ):
        asked = [
            (where, where.ask(f"{number}", thread_id="t")) for number in range(10) for where in (served, chat)
        ]
        run_ids = await asyncio.gather(*(asking for _, asking in asked))
        told = await asyncio.gather(
            *(where.events_of(run_id) for (where, _), run_id in zip(asked, run_ids, strict=True))
        )
        assert served.it.server.stats["max_active"] == 1
    assert {status(checked(one)) for one in told} == {"completed"}
    longest = max((checked(one)[-1][1]["messages"] for one in told), key=len)
    contents = [message["content"] for message in longest]
    assert len(contents) == 2 * len(run_ids)
    assert sorted(contents[::2]) == sorted(f"{number}" for number in range(10) for _ in range(2))


@pytest.mark.parametrize("when_busy", ["reject", "interrupt", "rollback"])
async def test_what_another_program_does_is_not_ended_from_here(tmp_path, when_busy):
    async with both(tmp_path, SLOW) as (served, chat):
        run_id = await chat.ask("first", thread_id="t")
        await chat.calls(1)
        with pytest.raises(ThreadBusy, match="Another program"):
            await served.ask("second", thread_id="t", when_busy=when_busy)
        with pytest.raises(ThreadBusy, match="Another program"):
            await served.engine.cancel(run_id)
        with pytest.raises(ThreadBusy, match="Another program"):
            await served.engine.delete_thread("t")
        assert (await served.engine.status(run_id)).status == "running"
        await chat.engine.cancel(run_id)


async def test_an_answered_run_and_those_that_wait_here_and_there_all_come_to_their_end(tmp_path):
    script = {**SIMPLE, "by_history": True}
    async with both(tmp_path, script) as (served, chat):
        review = RunOptions(auto_accepted_plan=False)
        first = await served.ask("first", thread_id="t", options=review)
        waiting = await chat.ask("second", thread_id="t")
        last = await served.ask("third", thread_id="t")
        paused = checked(await served.events_of(first))
        assert status(paused) == "interrupted"
        with suppress(RunNotWaiting):  # the thread may have gone on without it
            await served.engine.resume(first, "accept")
        async with asyncio.timeout(60):
            ends = [await where.events_of(run_id) for where, run_id in ((chat, waiting), (served, last))]
    assert [status(checked(told)) for told in ends] == ["completed", "completed"]


async def test_of_an_answer_and_a_cancel_in_two_programs_one_counts(tmp_path):
    async with both(tmp_path, {**SIMPLE, "by_history": True}) as (served, chat):
        review = RunOptions(auto_accepted_plan=False)
        for number in range(5):
            run_id = await served.ask("first", thread_id=f"t{number}", options=review)
            await served.events_of(run_id)
            done = await asyncio.gather(
                chat.engine.resume(run_id, "accept"), served.engine.cancel(run_id), return_exceptions=True
            )
            assert {type(one) for one in done} <= {AcceptedRun, RunRecord, RunNotWaiting, ThreadBusy}
            was_cancelled = isinstance(done[1], RunRecord) and done[1].status == "cancelled"
            async with asyncio.timeout(60):
                told = [await where.events_of(run_id) for where in (chat, served)]
            ended = "cancelled" if was_cancelled else "completed"
            assert (await served.engine.status(run_id)).status == ended
            assert {[event.status for event in one if event.type == "run_status"][-1] for one in told} == {
                ended
            }


async def test_a_run_of_another_program_is_followed_to_its_end(tmp_path):
    script = {**SIMPLE, "reporter": [{"chunks": ["word "] * 200, "delay_seconds": 0.002}]}
    async with both(tmp_path, script) as (served, chat):
        run_id = await chat.ask()
        followed, told = await asyncio.gather(served.events_of(run_id), chat.events_of(run_id))
    assert checked(followed) == checked(told)


async def test_a_question_on_a_thread_that_a_dead_program_left_comes_after_its_run(tmp_path):
    with serving(SLOW) as model:
        async with program(tmp_path, model, "chat") as chat:
            left = await chat.ask("first", thread_id="t")
            await chat.calls(1)
        model.reset(QUICK)
        async with program(tmp_path, model, "server") as served:
            assert (await served.engine.status(left)).status == "running", "a server leaves a terminal's runs"
            told = checked(await served.events_of(await served.ask("second", thread_id="t")))
            assert (await served.engine.status(left)).status == "completed"
    contents = [message["content"] for message in told[-1][1]["messages"]]
    assert contents == ["first", "Hello!", "second", "Hello!"]


async def test_a_run_that_a_dead_program_left_is_cancelled_here(tmp_path):
    with serving(SLOW) as model:
        async with program(tmp_path, model, "chat") as chat:
            left = await chat.ask("first")
            await chat.calls(1)
        async with program(tmp_path, model, "server") as served:
            assert (await served.engine.cancel(left)).status == "cancelled"


async def test_a_run_that_could_not_be_recorded_goes_on_when_it_can(tmp_path, monkeypatch):
    with serving(SIMPLE) as model:
        rules = EngineConfig(drain_seconds=0, watch_seconds=0.05)
        async with program(tmp_path, model, "server", rules) as served:
            with monkeypatch.context() as patch:
                patch.setattr(served.store.events, "append", _full)
                run_id = await served.ask()
                with pytest.raises(StoreError, match="full"):
                    await served.events_of(run_id)
            await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("reporter") == 1, 100)
            told = checked(await served.events_of(run_id))
    assert status(told) == "completed"


async def test_a_run_waits_while_the_store_cannot_take_it_up(tmp_path, monkeypatch):
    with serving(SLOW) as model:
        async with program(tmp_path, model, "server") as served:
            left = await served.ask("first")
            await served.calls(1)
        model.reset(QUICK)
        with monkeypatch.context() as patch:
            patch.setattr(SqliteRuns, "claim", _busy)
            async with program(tmp_path, model, "server") as served:
                assert (await served.engine.status(left)).status == "running"
        async with program(tmp_path, model, "server") as served:
            assert status(checked(await served.events_of(left))) == "completed"


async def test_an_absurd_usage_is_no_obstacle(tmp_path):
    absurd = {
        **reply("Hello!"),
        "usage": {"prompt_tokens": 10**20, "completion_tokens": 1, "total_tokens": 2},
    }
    with serving({"coordinator": [absurd]}) as model:
        async with program(tmp_path, model, "server") as served:
            assert status(checked(await served.events_of(await served.ask()))) == "completed"


async def _busy(*_: object) -> None:
    raise StoreBusy("Another process holds the file.")


async def _full(*_: object) -> None:
    raise StoreError("The disk is full.")
