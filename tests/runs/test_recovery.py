"""An orphaned run is continued by the next process."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from maniple.events import Event, read_event
from maniple.events.turns import TurnOrder
from maniple.graph import RunOptions
from maniple.runs import EngineConfig, InProcessEngine, RunNotWaiting, RunRequest, open_engine, recovery
from maniple.runs.in_process import Kind
from maniple.runs.recovery import MAX_STALLS
from maniple.runs.stored_inputs import read_inputs
from maniple.store import EventRecord, InputRecord, Store, open_store
from tests.openai_server import SIMPLE, OpenAIServer, call, reply, serving
from tests.team import checked, data, names, plan, scripted_team, status, step

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def process(
    folder: Path, server: OpenAIServer, kind: Kind = "server", drain_seconds: float = 0
) -> AsyncIterator[tuple[InProcessEngine, Store]]:
    """What one process has open: leaving it is a stop that waits `drain_seconds` for its runs."""
    async with (
        open_store(folder / "maniple.db", folder / "artifacts", server=True) as store,
        scripted_team({}, server=server, checkpointer=store.checkpointer) as it,
        open_engine(it.team, store, kind=kind, config=EngineConfig(drain_seconds=drain_seconds)) as engine,
    ):
        yield engine, store


async def events_of(engine: InProcessEngine, run_id: str) -> list[Any]:
    pages = [page async for page in engine.events(run_id)]
    return [read_event(record.type, record.data) for page in pages for record in page]


async def ordered(engine: InProcessEngine, run_id: str) -> list[Event]:
    """Return the events of a run with one agent at a time."""
    order = TurnOrder[EventRecord]()
    records = [record async for page in engine.events(run_id) for record in page]
    return [read_event(one.type, one.data) for record in records for one in order.feed(record)]


async def left_behind(folder: Path, server: OpenAIServer, role: str, **options: Any) -> str:
    """Begin a run and stop the process while it waits for the model of `role`."""
    async with process(folder, server) as (engine, _):
        request = RunRequest([HumanMessage("1+3=?")], options=RunOptions(**options))
        run_id = (await engine.submit(request)).run.run_id
        await asyncio.to_thread(server.wait_for, lambda stats: stats["by_role"].get(role) == 1)
    return run_id


@pytest.mark.parametrize("role", ["coordinator", "planner", "coder", "reporter"])
async def test_a_run_goes_on_where_its_process_stopped(tmp_path, role):
    with serving({**SIMPLE, role: [{"hang": True}]}) as server:
        run_id = await left_behind(tmp_path, server, role)
        before = dict(server.stats["by_role"])
        server.reset(SIMPLE)
        async with process(tmp_path, server) as (engine, _):
            frames = checked(await events_of(engine, run_id))
            run = await engine.status(run_id)
        again = dict(server.stats["by_role"])
    assert (status(frames), run.status, run.recoveries) == ("completed", "completed", 1)
    contents = [message["content"] for message in frames[-1][1]["messages"]]
    assert (contents.count("1+3=?"), "**4**" in contents[-1]) == (1, True)
    assert names(frames).count("run") == 1
    earlier = {"coordinator": 0, "planner": 1, "coder": 2, "reporter": 3}[role]
    finished = ["coordinator", "planner", "coder"][:earlier]
    assert not set(finished) & set(again), f"{finished} were asked again, after {before}"
    assert run.usage.model_calls == 5 or role == "coordinator"


@pytest.mark.parametrize("members", [("coder",), ("researcher", "coder")], ids=["one", "two_at_once"])
async def test_what_is_under_way_when_a_process_is_asked_to_stop_is_finished_and_not_done_again(
    tmp_path, members
):
    steps = [{**step(one), "needs": []} for one in members]
    first = {
        "coder": {**call("python_repl_tool", code="print(1+3)"), "hang": True},
        "researcher": {**call("tavily_search", query="the sum"), "hang": True},
    }
    script = {
        **SIMPLE,
        "planner": [reply(json.dumps(plan(*steps, step("reporter"))))],
        **{one: [first[one], reply("It is 4.")] for one in members},
    }
    with serving(script) as server:
        async with process(tmp_path, server, drain_seconds=60) as (engine, store):
            run_id = (await engine.submit(RunRequest([HumanMessage("1+3=?")]))).run.run_id
            await asyncio.to_thread(
                server.wait_for, lambda stats: all(stats["by_role"].get(one) for one in members)
            )
            stopping = asyncio.create_task(engine.drain())
            await asyncio.sleep(0)
            server.release()
            await stopping
            assert (await store.runs.get(run_id)).status == "running"
            assert all(server.stats["by_role"][one] == 1 for one in members)
        async with process(tmp_path, server) as (engine, store):
            frames = checked(await ordered(engine, run_id))
            calls = await store.ledger.list_by_run(run_id)
        asked = dict(server.stats["by_role"])
    assert status(frames) == "completed"
    assert {one: asked[one] for one in members} == dict.fromkeys(members, 2)
    assert [one.attempts for one in calls] == [1] * len(members)
    assert names(frames).count("tool_call") == len(members)


async def test_a_tool_call_with_an_unknown_result_is_asked_about(tmp_path):
    crash = call("python_repl_tool", code="hang")
    with serving({**SIMPLE, "coder": [crash, reply("done")]}) as server:
        async with process(tmp_path, server) as (engine, store):
            run_id = (await engine.submit(RunRequest([HumanMessage("1+3=?")]))).run.run_id
            async with asyncio.timeout(60):
                async for page in engine.events(run_id):
                    if any(record.type == "tool_call" for record in page):
                        break
        async with process(tmp_path, server) as (engine, store):
            first = await events_of(engine, run_id)
            assert (await engine.status(run_id)).status == "interrupted"
            [pause] = [event for event in first if event.type == "interrupt"]
            assert pause.payload["reason"] == "unknown_result"
            await engine.resume(run_id, "result: it printed 4", interrupt_id=pause.interrupt_id)
            frames = [(e.type, e.data()) for e in (await events_of(engine, run_id))[len(first) :]]
            calls = await store.ledger.list_by_run(run_id)
    assert status(checked(first)) == "interrupted"
    assert status(frames) == "completed"
    assert "it printed 4" in str(calls)


async def test_an_answer_that_was_taken_is_not_lost(tmp_path):
    with serving({**SIMPLE, "coder": [{"hang": True}]}) as server:
        async with process(tmp_path, server) as (engine, _):
            request = RunRequest([HumanMessage("1+3=?")], options=RunOptions(auto_accepted_plan=False))
            run_id = (await engine.submit(request)).run.run_id
            await events_of(engine, run_id)
            await engine.resume(run_id, "accept")  # and the process stops before anything came of it
        server.reset(SIMPLE)
        async with process(tmp_path, server) as (engine, _):
            await events_of(engine, run_id)
            run = await engine.status(run_id)
    assert run.status == "completed"


async def test_a_run_that_waits_still_waits_after_a_restart(tmp_path):
    with serving(SIMPLE) as server:
        async with process(tmp_path, server) as (engine, _):
            request = RunRequest([HumanMessage("1+3=?")], options=RunOptions(auto_accepted_plan=False))
            run_id = (await engine.submit(request)).run.run_id
            await events_of(engine, run_id)
        async with process(tmp_path, server) as (engine, _):
            assert (await engine.status(run_id)).status == "interrupted"
            accepted = await engine.resume(run_id, "accept")
            rest = (await events_of(engine, run_id))[accepted.after :]
    assert status(checked(rest)) == "completed"


async def test_a_run_that_stops_its_process_again_and_again_is_given_up(tmp_path):
    with serving({**SIMPLE, "planner": [{"hang": True}]}) as server:
        run_id = await left_behind(tmp_path, server, "planner")
        for _ in range(MAX_STALLS + 1):
            async with process(tmp_path, server):
                pass
        async with process(tmp_path, server) as (engine, _):
            frames = checked(await events_of(engine, run_id))
            run = await engine.status(run_id)
    assert (run.status, run.error_code) == ("failed", "recovered_too_often")
    assert "21 times" in data(frames, "error")[0]["message"]


async def test_a_run_that_was_cut_off_in_its_last_words_ends_with_the_whole_conversation(tmp_path):
    with serving(SIMPLE) as server:
        async with process(tmp_path, server) as (engine, store):
            run_id = (await engine.submit(RunRequest([HumanMessage("1+3=?")]))).run.run_id
            before = await events_of(engine, run_id)
            await store.runs.change(run_id, status="running", ended_at=None)
            await _cut(store, run_id, len(before) - 2)
        async with process(tmp_path, server) as (engine, _):
            after = await events_of(engine, run_id)
    assert after == before


async def _cut(store: Store, run_id: str, length: int) -> None:
    """Leave the first `length` events of a run, as a crash would."""
    kept = await store.events.read(run_id, 0, length)
    await store._database.execute("DELETE FROM events WHERE run_id = ?", (run_id,))
    await store.events.append([(run_id, kept)])


async def test_a_run_whose_last_event_was_emitted_has_ended(tmp_path):
    with serving(SIMPLE) as server:
        async with process(tmp_path, server) as (engine, store):
            run_id = (await engine.submit(RunRequest([HumanMessage("1+3=?")]))).run.run_id
            before = await events_of(engine, run_id)
            # As if the process had been killed between the last event and the row.
            await store.runs.change(run_id, status="running", ended_at=None)
        async with process(tmp_path, server) as (engine, _):
            run = await engine.status(run_id)
            assert await events_of(engine, run_id) == before
    assert run.status == "completed"
    assert isinstance(run.ended_at, float)


async def test_rolling_back_a_run_that_waited_for_its_turn_keeps_what_was_before(tmp_path):
    script = {"coordinator": [reply("hello"), {"hang": True}]}
    with serving(script) as server:
        async with process(tmp_path, server) as (engine, _):
            await events_of(engine, (await engine.submit(_said("good morning"))).run.run_id)
            await engine.submit(_said("first"))
            await engine.submit(_said("second"))  # waits for its turn when the process stops
        server.reset({"coordinator": [{"hang": True}]})
        async with process(tmp_path, server) as (engine, _):
            await asyncio.to_thread(server.wait_for, lambda stats: stats["active"] == 1)
            server.reset({"coordinator": [reply("done")]})
            third = await engine.submit(_said("third", when_busy="rollback"))
            frames = checked(await events_of(engine, third.run.run_id))
    contents = [message["content"] for message in frames[-1][1]["messages"]]
    assert contents == ["good morning", "hello", "third", "done"]


async def test_a_run_whose_thread_went_on_without_it_takes_no_answer_meant_for_another(tmp_path):
    with serving(SIMPLE) as server:
        async with process(tmp_path, server) as (engine, store):
            review = RunOptions(auto_accepted_plan=False)
            first = (await engine.submit(RunRequest([HumanMessage("a")], "t", review))).run.run_id
            await events_of(engine, first)
            await store.runs.change(first, status="completed")  # so that the next message is no answer
            second = (await engine.submit(RunRequest([HumanMessage("b")], "t", review))).run.run_id
            await events_of(engine, second)
            await store.runs.change(first, status="interrupted")
            with pytest.raises(RunNotWaiting):
                await engine.resume(first, "accept")
            assert (await engine.status(second)).status == "interrupted"


async def test_only_one_of_two_answers_is_taken(tmp_path):
    with serving(SIMPLE) as server:
        async with process(tmp_path, server) as (engine, store):
            review = RunOptions(auto_accepted_plan=False)
            run_id = (await engine.submit(RunRequest([HumanMessage("a")], "t", review))).run.run_id
            await events_of(engine, run_id)
            answers = [InputRecord(name, "resume", "user", "{}", 1.0) for name in ("a", "b")]
            taken = [await store.runs.answer(run_id, one) for one in answers]
            stored = [one.input_id for one in await store.inputs.list_by_run(run_id)]
    assert [one is not None for one in taken] == [True, False]
    assert stored == ["a"]


@pytest.mark.parametrize("role", ["coordinator", "coder"])
async def test_a_run_whose_process_was_killed_while_it_was_cancelled_ends_cancelled(tmp_path, role):
    with serving({**SIMPLE, role: [{"hang": True}]}) as server:
        run_id = await left_behind(tmp_path, server, role)
        async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
            await store.inputs.write(run_id, [InputRecord("c", "cancel", "user", "{}", 1.0)])
        server.reset(SIMPLE)
        async with process(tmp_path, server) as (engine, store):
            frames = checked(await events_of(engine, run_id))
            run = await engine.status(run_id)
            [cancel] = await read_inputs(store.inputs, run_id)
        assert (status(frames), run.status) == ("cancelled", "cancelled")
        assert dict(server.stats["by_role"]) == {}
        assert cancel.reply is not None
        assert cancel.reply.disposition == "taken"


@pytest.mark.parametrize("role", ["coordinator", "planner", "coder"])
async def test_one_run_that_cannot_be_read_is_ended_and_keeps_no_other_from_going_on(tmp_path, role):
    with serving({**SIMPLE, role: [{"hang": True}]}) as server:
        broken = await left_behind(tmp_path, server, role)
        async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
            await store.runs.change(broken, request="{}")
        server.reset(SIMPLE)
        async with process(tmp_path, server) as (engine, _):
            run = await engine.status(broken)
            frames = checked(await events_of(engine, broken))
            assert status(frames) == run.status == "failed"
            assert data(frames, "error")[0]["message"] == run.error
            assert "could not continue" in str(run.error)
            assert frames[-1][1]["messages"][0] == {"role": "user", "content": "1+3=?"}
            assert checked(await events_of(engine, (await engine.submit(_said("1+3=?"))).run.run_id))


async def test_a_run_whose_events_cannot_be_read_has_failed_all_the_same(tmp_path, monkeypatch):
    with serving({**SIMPLE, "planner": [{"hang": True}]}) as server:
        broken = await left_behind(tmp_path, server, "planner")

        async def unreadable(*_: Any) -> Any:
            raise ValueError("no event")

        monkeypatch.setattr(recovery, "load_run_view", unreadable)
        async with process(tmp_path, server) as (engine, _):
            run = await engine.status(broken)
    assert (run.status, run.error_code, run.ended_at is not None) == ("failed", "internal", True)


def _said(text: str, **options: Any) -> RunRequest:
    return RunRequest([HumanMessage(text)], thread_id="t", **options)


@asynccontextmanager
async def cut_off(
    folder: Path, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[str, InProcessEngine, Store]]:
    """Open the terminal's engine over a run that another process left behind while it asked its model.

    Runs are read as slowly as it takes one that is gone on with to come to its model, or to its end.
    """
    run_id = await left_behind(folder, server, "coordinator")
    await asyncio.to_thread(server.wait_for, lambda stats: stats["active"] == 0)
    server.reset()
    async with process(folder, server, kind="chat") as (engine, store):
        get = store.runs.get

        async def slow(*arguments: Any) -> Any:
            async with asyncio.timeout(60):
                while engine.tasks.active and not server.stats["calls"]:  # noqa: ASYNC110 - neither tells
                    await asyncio.sleep(0.001)
            return await get(*arguments)

        monkeypatch.setattr(store.runs, "get", slow)
        yield run_id, engine, store


async def test_cancelling_a_run_instead_of_resuming_it_calls_no_model(tmp_path, monkeypatch):
    with serving({"coordinator": [{"hang": True}]}) as server:
        async with cut_off(tmp_path, server, monkeypatch) as (run_id, engine, _):
            assert (await engine.cancel(run_id)).status == "cancelled"
        assert server.stats["calls"] == 0
