"""Many who write at once do not disturb one another."""

import asyncio
import sqlite3

import pytest

from tests.store.samples import a_run, a_thread

pytestmark = pytest.mark.anyio
WRITERS = 40


async def test_many_writers_at_once_lose_nothing(store):
    thread = await store.threads.create(a_thread())
    runs = [await store.runs.add(a_run(thread, store.process)) for _ in range(WRITERS)]

    async def calls(run_id: str) -> None:
        for number in range(20):
            await store.ledger.begin(run_id, f"call{number}", "tool", "{}")
            await store.ledger.end(run_id, f"call{number}", "{}")

    await asyncio.gather(*(calls(run.run_id) for run in runs))
    kept = [await store.ledger.list_by_run(run.run_id) for run in runs]
    assert [len(calls) for calls in kept] == [20] * WRITERS
    assert all(call.result == "{}" for calls in kept for call in calls)


async def test_a_cursor_stays_in_its_thread(sqlite_store):
    with pytest.raises(TypeError, match="cursor"):
        await sqlite_store._database.write(lambda connection: connection.execute("SELECT 1"))
    with pytest.raises(TypeError, match="cursor"):
        await sqlite_store._database.read(lambda connection: connection.execute("SELECT 1"))
    assert await sqlite_store._database.read(lambda connection: isinstance(connection, sqlite3.Connection))


async def test_a_deferred_statement_that_fails_takes_no_other_with_it(sqlite_store):
    store = sqlite_store
    into = "INSERT INTO threads VALUES (NULL, ?, '', 'A title', ?, 1.0, '', '', '', '', '', '', '', '{}', '')"
    store._database.defer(into, ["first", 1.0])
    store._database.defer(into, [2**70, 2.0])
    store._database.defer("INSERT INTO nowhere VALUES (?)", ["x"])
    store._database.defer(into, ["second", 3.0])
    await store.threads.touch("first", "Another title")
    assert [one.title for one in await store.threads.list("")] == ["A title", "Another title"]
