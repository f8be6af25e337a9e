"""What runs have read is kept and deleted with them."""

import asyncio
import sqlite3
from contextlib import closing

import pytest

from maniple.errors import StoreError
from maniple.store import open_store
from tests.store.samples import stored_run

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


async def test_it_is_there_when_the_file_is_opened_again(tmp_path):
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
        run = await stored_run(store)
        before = await store.evidence(run.run_id).add("https://e.test/", "A", "page", "text")
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
        evidence = store.evidence(run.run_id)
        assert await evidence.sources() == [before]
        assert await evidence.texts(1) == ["text"]


async def test_a_file_of_before_there_were_other_addresses_keeps_its_sources(tmp_path):
    file = tmp_path / "maniple.db"
    async with open_store(file, tmp_path / "artifacts", server=True) as store:
        run = await stored_run(store)
        before = await store.evidence(run.run_id).add("https://e.test/", "A", "page", "text")
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript("DROP TABLE source_aliases; PRAGMA user_version = 3;")
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
