"""Runs wait while the store is locked, full or read-only, and go on where they were."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from maniple.errors import StoreError
from maniple.events import read_event
from maniple.runs import EngineConfig, InProcessEngine, RunRequest, open_engine
from maniple.store import Store, open_store, waiting
from maniple.store.sqlite import database
from tests.openai_server import SIMPLE
from tests.store.samples import a_thread
from tests.team import checked, data, names, scripted_team, status

pytestmark = pytest.mark.anyio
RULES = EngineConfig(drain_seconds=0.1, outage_seconds=60)
BOUND_SECONDS = 30


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock of 5 s counts as away after 0.05 s."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(waiting, "FIRST_PAUSE_SECONDS", 0.02)
    monkeypatch.setattr(waiting, "MAX_PAUSE_SECONDS", 0.1)


@contextmanager
def locked(store: Store, path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


@contextmanager
def read_only(store: Any, path: Path) -> Iterator[None]:
    store._database._writer.execute("PRAGMA query_only = ON")
    yield
    store._database._writer.execute("PRAGMA query_only = OFF")


@asynccontextmanager
async def opened(path: Path, rules: EngineConfig = RULES) -> AsyncIterator[tuple[Store, InProcessEngine]]:
    async with (
        open_store(path, path.parent / "artifacts", server=True) as store,
        scripted_team(SIMPLE, checkpointer=store.checkpointer) as it,
        open_engine(it.team, store, kind="server", config=rules) as engine,
    ):
        yield store, engine


async def until(engine: InProcessEngine, run_id: str, waiting_for: str | None) -> Any:
    bound = time.monotonic() + BOUND_SECONDS
    while (record := await engine.status(run_id)).waiting_for != waiting_for:
        assert time.monotonic() < bound, record
        await asyncio.sleep(0.01)
    return record


async def looked_for_orphans(store: Any, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Wait until the watcher has looked so often; it must begin no run."""
    probe, claim, looks, claims = store.probe, store.runs.claim, list[None](), list[str]()

    async def counted_probe() -> None:
        looks.append(None)
        await probe()

    async def noted_claim(run: Any) -> Any:
        claims.append(run.run_id)
        return await claim(run)

    with monkeypatch.context() as patch:
        patch.setattr(store, "probe", counted_probe)
        patch.setattr(store.runs, "claim", noted_claim)
        async with asyncio.timeout(BOUND_SECONDS):
            while len(looks) < times:  # noqa: ASYNC110 - the watcher sets no event
                await asyncio.sleep(0.01)
    assert claims == []


async def ask(engine: InProcessEngine) -> str:
    return (await engine.submit(RunRequest([HumanMessage("1+3=?")]))).run.run_id


async def follow_to(engine: InProcessEngine, run_id: str, kind: str) -> None:
    async for page in engine.events(run_id, 0):
        if any(record.type == kind for record in page):
            return
    raise AssertionError(kind)


async def all_events(engine: InProcessEngine, run_id: str) -> list[Any]:
    return [read_event(one.type, one.data) async for page in engine.events(run_id, 0) for one in page]


@pytest.mark.parametrize("away", [locked, read_only])
@pytest.mark.parametrize("moment", ["", "tool_call", "tool_call_result"])
async def test_a_run_waits_for_the_store_and_repeats_nothing(tmp_path, away, moment):
    path = tmp_path / "maniple.db"
    async with opened(path) as (store, engine):
        run_id = await ask(engine)
        if moment:
            await follow_to(engine, run_id, moment)
        with away(store, path):
            record = await until(engine, run_id, "store")
            assert (record.status, record.waiting_until - record.waiting_since) == ("queued", 60)
            # Others get their answers meanwhile: what is stored, and the reason.
            begun = time.monotonic()
            assert await store.runs.get(run_id) is not None
            with pytest.raises(StoreError):
                await store.threads.create(a_thread())
            with pytest.raises(StoreError):
                await ask(engine)
            assert time.monotonic() - begun < 5
        frames = checked(await all_events(engine, run_id))
        calls = await store.ledger.list_by_run(run_id)
        record = await engine.status(run_id)
        assert status(checked(await all_events(engine, await ask(engine)))) == "completed"
    assert status(frames) == record.status == "completed"
    assert record.waiting_for is None
    assert [(one.tool_name, one.attempts) for one in calls] == [("python_repl_tool", 1)]
    assert names(frames).count("run_waiting") == names(frames).count("run_continued")


async def test_a_run_waits_for_space(tmp_path):
    path = tmp_path / "maniple.db"
    async with opened(path) as (store, engine):
        writer = store._database._writer
        (pages,) = writer.execute("PRAGMA page_count").fetchone()
        writer.execute(f"PRAGMA max_page_count = {pages}").fetchall()
        run_id = await ask(engine)
        assert (await until(engine, run_id, "store")).status == "queued"
        writer.execute("PRAGMA max_page_count = 1000000").fetchall()
        frames = checked(await all_events(engine, run_id))
    assert status(frames) == "completed"
    [event] = [found for name, found in frames if name == "run_waiting"]
    assert "the disk is full" in event["reason"]


async def test_a_program_stops_while_its_store_is_away_and_the_next_one_goes_on(tmp_path):
    path = tmp_path / "maniple.db"
    async with opened(path) as (store, engine):
        run_id = await ask(engine)
        await follow_to(engine, run_id, "tool_call")
        lock = locked(store, path)
        lock.__enter__()
        await until(engine, run_id, "store")
        begun = time.monotonic()
        await engine.tasks.drain()
        assert time.monotonic() - begun < BOUND_SECONDS
    lock.__exit__(None, None, None)
    async with opened(path) as (store, engine):
        frames = checked(await all_events(engine, run_id))
    # The call under way had its result, or nobody knows and the user is asked.
    asked = [one["payload"]["reason"] for one in data(frames, "interrupt")]
    assert (status(frames), asked) in (("completed", []), ("interrupted", ["unknown_result"]))


async def test_a_store_that_stays_away_is_waited_for_no_longer_than_the_limit(tmp_path, monkeypatch):
    path = tmp_path / "maniple.db"
    async with opened(path, EngineConfig(drain_seconds=0.1, outage_seconds=0.3, watch_seconds=0.1)) as (
        store,
        engine,
    ):
        run_id = await ask(engine)
        with locked(store, path):
            await until(engine, run_id, "store")
            await until(engine, run_id, None)
            await looked_for_orphans(store, monkeypatch, times=3)
            assert await store.runs.list_orphaned("server", {}) != []
        # What could not be stored is done again, from the last checkpoint.
        bound = time.monotonic() + BOUND_SECONDS
        while (record := await engine.status(run_id)).is_unfinished:
            assert time.monotonic() < bound, record
            await asyncio.sleep(0.05)
    assert record.status in ("completed", "failed")
    assert record.status == "completed" or record.error_code == "store_busy"
