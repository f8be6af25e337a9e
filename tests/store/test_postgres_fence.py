"""Nobody writes for a run but the process that drives it."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint

from maniple.errors import RunTakenOver
from maniple.evidence import NotedFinding
from maniple.store import RunRecord, Store
from maniple.types import RUN_MARK
from tests.postgres import OpenStore
from tests.store.samples import some_events, stored_run

pytestmark = pytest.mark.anyio
FENCED = (
    *("events", "tool_calls", "artifacts", "sources", "source_texts", "source_aliases", "readings"),
    *("unread_pages", "findings", "page_attempts", "checkpoints", "checkpoint_blobs", "checkpoint_writes"),
)


@pytest.fixture
async def zombie(postgres_store: Store, open_postgres_again: OpenStore) -> AsyncIterator[Store]:
    """A process that was taken for dead: another one drives its run."""
    async with open_postgres_again(server=False) as opened:
        yield opened


async def taken_over(store, zombie) -> RunRecord:
    """Return a run of the zombie, for which it has written all it can, after `store` has claimed it."""
    run = await stored_run(zombie, status="running")
    await write_everywhere(zombie, run, 1)
    await zombie.ledger.begin(run.run_id, "open", "bash_tool", "{}")
    await zombie.database.execute(
        "UPDATE processes SET beat_at = 'epoch' WHERE process = %s", (zombie.process,)
    )
    await zombie.database.execute(
        "UPDATE runs SET process = %s WHERE run_id = %s", (store.process, run.run_id)
    )
    return run


def writes_of(store, run, number):
    """Return a write to each fenced table, by name."""
    evidence = store.evidence(run.run_id)
    place = {
        "configurable": {"thread_id": run.thread_id, "checkpoint_ns": ""},
        "metadata": {RUN_MARK: run.run_id},
    }
    versions = {"messages": f"{number}"}
    checkpoint = {
        **empty_checkpoint(),
        "id": f"c{number}",
        "channel_values": {"messages": [HumanMessage("hello")]},
        "channel_versions": versions,
    }
    named = {**place, "configurable": {**place["configurable"], "checkpoint_id": f"c{number}"}}
    url = f"https://e.test/{number}"
    noted = NotedFinding(1, f"It is text {number}.", "text", "0" * 64, 0, 4)
    return {
        "events": lambda: store.events.append([(run.run_id, some_events(number, number))]),
        "calls begun": lambda: store.ledger.begin(run.run_id, f"call{number}", "bash_tool", "{}"),
        "calls started": lambda: store.ledger.start(run.run_id, f"call{number}"),
        "calls ended": lambda: store.ledger.end(run.run_id, f"call{number}", "{}"),
        "artifacts": lambda: store.artifacts.add(run, "a.txt", "text/plain", b"a"),
        "sources": lambda: evidence.add(url, "A", "page", f"text {number}", asked=f"https://sho.rt/{number}"),
        "unread pages": lambda: evidence.add_unread(f"https://e.test/gone{number}", "404"),
        "attempts": lambda: evidence.add_attempt(1, url),
        "findings": lambda: evidence.add_finding(noted),
        "checkpoints": lambda: store.checkpointer.aput(place, checkpoint, {}, versions),
        "writes": lambda: store.checkpointer.aput_writes(named, [("messages", number)], "task"),
        "record": lambda: store.runs.change(run.run_id, stalls=number),
    }


async def write_everywhere(store, run, number) -> list[str]:
    """Write to each fenced table; return the names of the writes that were refused."""
    refused = []
    for name, write in writes_of(store, run, number).items():
        try:
            await write()
        except RunTakenOver:
            refused.append(name)
    return refused


async def contents(store) -> str:
    """Return all rows of the fenced tables, and of the runs."""
    sql = "SELECT coalesce(json_agg(t ORDER BY t::text), '[]') FROM {} t"
    return json.dumps([(await store.database.fetch(sql.format(table)))[0][0] for table in (*FENCED, "runs")])


async def test_a_process_that_lost_its_run_writes_nothing_for_it(postgres_store, zombie):
    run = await taken_over(postgres_store, zombie)
    before = await contents(postgres_store)
    attempted = list(writes_of(zombie, run, 2))
    # What changes no row is not refused: there is no such call to start or to end.
    harmless = {"calls started", "calls ended"}
    assert await write_everywhere(zombie, run, 2) == [one for one in attempted if one not in harmless]
    ledger, known = zombie.ledger, (run.run_id, "open")
    for late in (
        lambda: ledger.begin(*known, "bash_tool", "{}"),
        lambda: ledger.start(*known),
        lambda: ledger.end(*known, "{}"),
    ):
        with pytest.raises(RunTakenOver):
            await late()
    assert await contents(postgres_store) == before
    assert await write_everywhere(postgres_store, run, 2) == []


@pytest.mark.parametrize("is_lost_first", [True, False])
async def test_a_transaction_that_writes_for_several_runs_is_refused_for_one_that_is_lost(
    postgres_store, zombie, is_lost_first
):
    own, lost = await stored_run(zombie, status="running"), await taken_over(postgres_store, zombie)
    before = await contents(postgres_store)
    sql = "INSERT INTO page_attempts (run_id, step, comparable, url) VALUES (%s, 1, %s, '')"
    order = [own, lost, own] if not is_lost_first else [lost, own, own]

    async def write(connection) -> None:
        for place, run in enumerate(order):
            await connection.execute(sql, (run.run_id, f"new {place}"))

    for _ in range(2):
        with pytest.raises(RunTakenOver):
            await zombie.database.repeat(write)
    assert await contents(postgres_store) == before
    order[:] = [own, own]
    await zombie.database.repeat(write)


async def test_events_that_another_process_has_stored_do_not_count_as_stored_by_this_one(
    postgres_store, zombie
):
    run = await taken_over(postgres_store, zombie)
    await postgres_store.events.append([(run.run_id, some_events(2, 2))])
    with pytest.raises(RunTakenOver):
        await zombie.events.append([(run.run_id, some_events(2, 2))])
    await postgres_store.events.append([(run.run_id, some_events(2, 2))])
    assert await postgres_store.events.read(run.run_id) == some_events(1, 2)


async def test_without_the_triggers_a_process_that_lost_its_run_would_write(postgres_store, zombie):
    run = await taken_over(postgres_store, zombie)
    for table in FENCED:
        await postgres_store.database.execute(f"ALTER TABLE {table} DISABLE TRIGGER fence")
    assert await write_everywhere(zombie, run, 2) == ["record"], "the condition of the statement is left"
    assert {problem for problem in await postgres_store.check() if "fence" in problem} == {
        f"The fence of {table} is disabled." for table in FENCED
    }


async def test_each_table_of_a_run_has_a_fence(postgres_store):
    sql = (
        "SELECT table_name FROM information_schema.columns WHERE table_schema = 'maniple' "
        "AND column_name IN ('run_id', 'text_run_id') EXCEPT SELECT relname FROM pg_trigger "
        "JOIN pg_class ON pg_class.oid = tgrelid WHERE tgname = 'fence'"
    )
    open_to_all = {name for (name,) in await postgres_store.database.fetch(sql)}
    of_the_service = {"schedule_ticks", "webhook_deliveries", "batch_items"}
    assert open_to_all - of_the_service == {"runs", "run_inputs", "run_texts"}, (
        "the record has a condition; anyone may send a run something, and index a run that has ended"
    )


async def test_a_checkpoint_without_a_run_is_refused_while_another_process_works_on_the_thread(
    postgres_store, zombie
):
    run = await taken_over(postgres_store, zombie)
    place = {"configurable": {"thread_id": run.thread_id, "checkpoint_ns": ""}}
    with pytest.raises(RunTakenOver):
        await zombie.checkpointer.aput(place, empty_checkpoint(), {}, {})
    await postgres_store.checkpointer.aput(place, empty_checkpoint(), {}, {})
    await postgres_store.runs.change(run.run_id, status="completed")
    await zombie.checkpointer.aput(place, empty_checkpoint(), {}, {})


async def test_the_checkpoints_of_a_run_are_not_pruned_by_a_process_that_lost_it(postgres_store, zombie):
    run = await taken_over(postgres_store, zombie)
    before = await contents(postgres_store)
    for status in ("running", "interrupted", "completed"):
        await postgres_store.runs.change(run.run_id, status=status)
        with pytest.raises(RunTakenOver):
            await zombie.checkpoints.prune(run.thread_id)
    await postgres_store.runs.change(run.run_id, status="running")
    with pytest.raises(RunTakenOver):
        await zombie.checkpoints.rollback(run.thread_id, None)
    assert await contents(postgres_store) == before
    await postgres_store.checkpoints.prune(run.thread_id)
    await postgres_store.checkpoints.rollback(run.thread_id, None)
    assert (
        await postgres_store.checkpointer.aget_tuple({"configurable": {"thread_id": run.thread_id}}) is None
    )


async def test_a_run_of_a_living_process_is_not_claimed(postgres_store, zombie):
    run = await stored_run(zombie, status="running")
    assert await postgres_store.runs.list_orphaned(None) == []
    assert await postgres_store.runs.claim(run) is None
    assert await postgres_store.runs.list_in_other_processes(run.thread_id) == [run]


def put(store, run, number):
    """Put a checkpoint of a run, and writes of a task that led to it, at the same time."""
    given = {"thread_id": run.thread_id, "checkpoint_ns": "", "checkpoint_id": f"c{number - 1}"}
    place = {"configurable": given, "metadata": {RUN_MARK: run.run_id}}
    versions = {"messages": f"{number}"}
    values = {"messages": [HumanMessage(f"hello {number}")]}
    checkpoint = {**empty_checkpoint(), "id": f"c{number}"}
    checkpoint |= {"channel_values": values, "channel_versions": versions}
    saver = store.checkpointer
    writes = saver.aput_writes(place, [("messages", number), ("other", number)], "task")
    return asyncio.gather(writes, saver.aput(place, checkpoint, {}, versions), return_exceptions=True)


async def test_what_runs_put_at_the_same_time_is_stored_together_and_refused_to_each_alone(
    postgres_store, zombie, monkeypatch
):
    own = [await stored_run(zombie, status="running") for _ in range(6)]
    lost = await taken_over(postgres_store, zombie)
    before = await contents(postgres_store)
    sent, execute = list[str](), zombie.database.execute

    async def note(sql: str, values=()):
        sent.append(sql)
        return await execute(sql, values)

    monkeypatch.setattr(zombie.database, "execute", note)
    for found in await asyncio.gather(put(zombie, lost, 2), put(zombie, lost, 3)):
        assert [type(one) for one in found] == [RunTakenOver] * 2
    assert await contents(postgres_store) == before
    sent.clear()
    for found in await asyncio.gather(*(put(zombie, run, 2) for run in own)):
        assert not [one for one in found if isinstance(one, BaseException)]
    assert len(sent) == 1
    *done, refused = await asyncio.gather(*(put(zombie, run, 3) for run in (*own, lost)))
    assert not [one for found in done for one in found if isinstance(one, BaseException)]
    assert [type(one) for one in refused] == [RunTakenOver] * 2
    for run in own:
        found = await postgres_store.checkpointer.aget_tuple({"configurable": {"thread_id": run.thread_id}})
        assert found.checkpoint["id"] == "c3"
        assert found.checkpoint["channel_values"]["messages"] == [HumanMessage("hello 3")]
        earlier = {"thread_id": run.thread_id, "checkpoint_id": "c2"}
        found = await postgres_store.checkpointer.aget_tuple({"configurable": earlier})
        assert found.pending_writes == [("task", "messages", 3), ("task", "other", 3)]
