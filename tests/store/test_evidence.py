"""The sources of runs are stored and deleted with them."""

import asyncio
import sqlite3
from contextlib import closing

import pytest

from maniple.errors import StoreError
from maniple.evidence import NotedFinding
from maniple.reading.publication import Publication
from maniple.store import open_store
from tests.store.samples import WITHOUT_BRANCHES, a_run, stored_run

pytestmark = pytest.mark.anyio


async def test_it_is_deleted_with_the_thread(store):
    run = await stored_run(store)
    evidence = store.evidence(run.run_id)
    await evidence.add("https://e.test/", "A", "page", "text")
    await store.threads.delete(run.thread_id)
    assert await evidence.sources() == []
    assert await evidence.texts(1) == []
    with pytest.raises(StoreError, match="deleted"):
        await evidence.add("https://e.test/", "A", "page", "text")
    assert await store.check() == []


async def test_it_is_there_when_the_file_is_opened_again(reopen):
    async with reopen(server=True) as store:
        run = await stored_run(store)
        before = await store.evidence(run.run_id).add("https://e.test/", "A", "page", "text")
    async with reopen(server=True) as store:
        evidence = store.evidence(run.run_id)
        assert await evidence.sources() == [before]
        assert await evidence.texts(1) == ["text"]


async def test_a_file_of_before_there_were_other_addresses_keeps_its_sources(tmp_path):
    file = tmp_path / "maniple.db"
    async with open_store(file, tmp_path / "artifacts", server=True) as store:
        run = await stored_run(store)
        before = await store.evidence(run.run_id).add("https://e.test/", "A", "page", "text")
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(
            "DROP TABLE run_inputs;"
            "ALTER TABLE runs DROP COLUMN stalls; ALTER TABLE runs DROP COLUMN retries;"
            "DROP TABLE source_aliases; ALTER TABLE sources DROP COLUMN inherited;"
            "ALTER TABLE sources DROP COLUMN published; ALTER TABLE sources DROP COLUMN author;"
            "ALTER TABLE sources DROP COLUMN publisher; DROP TABLE unread_pages;"
            "DROP TABLE findings; DROP TABLE page_attempts;"
            "ALTER TABLE runs DROP COLUMN waiting_for; ALTER TABLE runs DROP COLUMN waiting_since;"
            "ALTER TABLE runs DROP COLUMN waiting_until; ALTER TABLE tool_calls DROP COLUMN started_at;"
            f"{WITHOUT_BRANCHES}"
            "DROP INDEX threads_of_history; ALTER TABLE threads DROP COLUMN history;"
            "DROP INDEX threads_of_cut_history; ALTER TABLE threads DROP COLUMN cut_history;"
            "DROP INDEX temporary_threads; ALTER TABLE threads DROP COLUMN temporary_of;"
            "ALTER TABLE threads DROP COLUMN copied_run; ALTER TABLE threads DROP COLUMN metadata;"
            "PRAGMA user_version = 3;"
        )
    async with open_store(file, tmp_path / "artifacts", server=True) as store:
        evidence = store.evidence(run.run_id)
        assert await evidence.sources() == [before]
        again = await evidence.add("https://e.test/", "A", "page", "text", asked="https://sho.rt/1")
        assert await evidence.sources() == [again]
    assert again.also == ("https://sho.rt/1",)


async def test_calls_at_once_get_numbers_of_their_own(store):
    evidence = store.evidence((await stored_run(store)).run_id)
    calls = [evidence.add(f"https://e.test/{n % 20}", f"{n}", "result", f"{n}") for n in range(40)]
    numbers = [source.number for source in await asyncio.gather(*calls)]
    assert numbers[:20] == numbers[20:]
    assert sorted(numbers[:20]) == [*range(1, 21)]


async def start_run_on(store, thread_of):
    thread = await store.threads.get(thread_of.thread_id, None)
    assert thread is not None
    run = await store.runs.add(a_run(thread, store.process))
    started = await store.runs.start(run.run_id)
    assert started is not None
    return started


async def test_a_run_begins_with_the_sources_of_the_run_before_it_under_their_numbers(store):
    first = await stored_run(store)
    before = store.evidence(first.run_id)
    await before.add("https://e.test/a", "A", "page", "text of a")
    await before.add("https://e.test/b", "B", "page", "text of b", asked="https://sho.rt/b")
    second = await start_run_on(store, first)
    evidence = store.evidence(second.run_id)
    assert [(one.number, one.url, one.also, one.inherited) for one in await evidence.sources()] == [
        (1, "https://e.test/a", (), True),
        (2, "https://e.test/b", ("https://sho.rt/b",), True),
    ]
    assert await evidence.texts(2) == ["text of b"]
    new = await evidence.add("https://e.test/c", "C", "page", "text of c")
    again = await evidence.add("https://e.test/a", "A", "page", "newer text of a")
    assert (new.number, new.inherited, again.number, again.inherited) == (3, False, 1, False)
    assert await evidence.texts(1) == ["text of a", "newer text of a"]
    assert len(await before.sources()) == 2, "the earlier run's record stays as it was"
    third = store.evidence((await start_run_on(store, first)).run_id)
    assert [(one.number, one.inherited) for one in await third.sources()] == [(1, True), (2, True), (3, True)]
    assert await third.texts(1) == ["text of a", "newer text of a"]


async def test_a_run_that_starts_again_inherits_nothing_twice(store):
    first = await stored_run(store)
    await store.evidence(first.run_id).add("https://e.test/a", "A", "page", "text")
    await store.evidence(first.run_id).describe(1, Publication("2024-03-12", "Jane Doe", "The Daily"))
    second = await start_run_on(store, first)
    await store.evidence(second.run_id).add("https://e.test/b", "B", "page", "text")
    assert await store.runs.start(second.run_id) is not None
    sources = await store.evidence(second.run_id).sources()
    assert [(one.number, one.inherited) for one in sources] == [(1, True), (2, False)]
    assert [one.publisher for one in sources] == ["The Daily", ""]
    assert await store.check() == []


async def test_another_thread_inherits_nothing(store):
    first = await stored_run(store)
    await store.evidence(first.run_id).add("https://e.test/a", "A", "page", "text")
    other = await stored_run(store)
    await store.runs.start(other.run_id)
    assert await store.evidence(other.run_id).sources() == []


async def test_a_run_begins_with_the_findings_of_the_run_before_it(store):
    first = await stored_run(store)
    before = store.evidence(first.run_id)
    await before.add("https://e.test/a", "A", "page", "text of a")
    noted = NotedFinding(1, "It is a text.", "text of a", "0" * 64, 0, 9)
    assert await before.add_finding(noted)
    evidence = store.evidence((await start_run_on(store, first)).run_id)
    (inherited,) = await evidence.findings()
    assert (inherited.statement, inherited.quote, inherited.inherited) == ("It is a text.", "text of a", True)
    assert await evidence.add_finding(noted)
    assert [one.inherited for one in await evidence.findings()] == [False]
    assert [one.inherited for one in await before.findings()] == [False]
    await store.threads.delete(first.thread_id)
    assert await evidence.findings() == []
    assert await store.check() == []
