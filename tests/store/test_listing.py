"""Lists of many runs."""

import time
from dataclasses import replace

import pytest

from maniple.store import open_store
from maniple.store.rows import RUN_COLUMNS, run_values
from tests.store.samples import a_run, a_thread

pytestmark = pytest.mark.anyio


async def stored(path, count):
    """A file with so many runs; written at once, for one transaction a run would take its time."""
    async with open_store(path, path.parent / "artifacts", server=True) as store:
        thread = await store.threads.create(a_thread())
        request = '{"messages": "' + "x" * 500 + '"}'
        rows = [
            run_values(replace(a_run(thread, at=1000.0 + n), request=request, status="completed"))
            for n in range(count)
        ]
        marks = ", ".join("?" * len(rows[0]))
        sql = f"INSERT INTO runs ({RUN_COLUMNS}) VALUES ({marks})"
        await store._database.write(lambda connection: connection.executemany(sql, rows) and None)
    return thread


async def quickest(store, thread, middle):
    """The seconds of one page each of the owner's runs, a thread's runs, and what is unfinished."""
    best = float("inf")
    for _ in range(15):
        begun = time.perf_counter()
        assert len(await store.runs.list("", 20, middle)) == 20
        assert len(await store.runs.list_by_thread(thread.thread_id, 20)) == 20
        assert await store.runs.list_orphaned("server") == []
        best = min(best, time.perf_counter() - begun)
    return best


async def test_a_page_among_ten_thousand_runs_takes_hardly_longer_than_among_a_hundred(tmp_path):
    seconds = []
    for count in (100, 10_000):
        path = tmp_path / str(count) / "maniple.db"
        thread = await stored(path, count)
        async with open_store(path, path.parent / "artifacts", server=True) as store:
            seconds.append(await quickest(store, thread, 1000.0 + count // 2))
    few, many = seconds
    assert many / few < 5
