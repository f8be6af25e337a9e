"""A PostgreSQL server that is stopped, silent, or busy: who waits for it, and who is told at once."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from maniple.errors import StoreError, StoreUnreachable
from maniple.store import Store
from maniple.store.artifact_files import ArtifactFiles
from maniple.store.postgres.contact import AWAY_SECONDS, LEAST_SECONDS
from maniple.store.postgres.database import PROBE_SECONDS, ProcessTimes
from maniple.store.postgres.store import open_postgres
from maniple.store.waiting import StoreWait, WaitLimit, waiting
from tests.postgres import open_line
from tests.store.samples import a_thread, stored_run

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
SLACK_SECONDS = 2.0
"""What a loaded machine may add to a bound."""


@asynccontextmanager
async def opened(url: str, tmp_path) -> AsyncIterator[Store]:
    async with open_postgres(url, ArtifactFiles(tmp_path / "artifacts"), server=False, pool=2) as store:
        yield store


@asynccontextmanager
async def stopped(cluster) -> AsyncIterator[None]:
    await asyncio.to_thread(cluster.stop, "immediate")
    try:
        yield
    finally:
        await asyncio.to_thread(cluster.start)


async def until_away(store: Store) -> None:
    async with asyncio.timeout(30):
        while store.database.contact.failure is None:  # noqa: ASYNC110 - a beat finds it
            await asyncio.sleep(0.02)


async def refused_after(call) -> float:
    begun = time.monotonic()
    with pytest.raises(StoreUnreachable):
        await call
    return time.monotonic() - begun


class Waits(StoreWait):
    """Takes note of who waits."""

    def __init__(self, limit: WaitLimit) -> None:
        super().__init__(limit)
        self.begun, self.ended = asyncio.Event(), 0

    def begin(self, since: float, failure: StoreError) -> None:
        self.begun.set()

    async def end(self) -> None:
        self.ended += 1


async def test_while_the_server_is_stopped_a_run_waits_and_others_are_told_at_once(
    cluster, postgres_url, tmp_path
):
    async with opened(postgres_url, tmp_path) as store:
        run, waits = await stored_run(store, status="running"), Waits(WaitLimit(60))
        async with stopped(cluster):
            assert await refused_after(store.probe()) < PROBE_SECONDS + SLACK_SECONDS
            with waiting(waits):
                begin = asyncio.create_task(store.ledger.begin(run.run_id, "c", "bash_tool", "{}"))
                read = asyncio.create_task(store.runs.get(run.run_id))
            assert await refused_after(store.runs.get(run.run_id)) < AWAY_SECONDS + SLACK_SECONDS
            assert await refused_after(store.threads.create(a_thread())) < AWAY_SECONDS + SLACK_SECONDS
            # Once it is known to be away, nobody waits for its return.
            assert await refused_after(store.runs.get(run.run_id)) < LEAST_SECONDS + SLACK_SECONDS
            await asyncio.wait_for(waits.begun.wait(), 30)
            assert not begin.done()
        back = time.monotonic()
        assert (await begin).attempts == 1
        assert (await read).run_id == run.run_id
        assert time.monotonic() - back < 4 * SLACK_SECONDS
        assert waits.ended == 2
        await store.probe()
        assert store.database.contact.failure is None


async def test_a_run_waits_no_longer_than_its_limit_or_the_end_of_the_program(
    cluster, postgres_url, tmp_path
):
    async with opened(postgres_url, tmp_path) as store:
        short, ended = Waits(WaitLimit(0.5)), Waits(WaitLimit(60))
        async with stopped(cluster):
            await until_away(store)
            with waiting(short):
                assert await refused_after(store.threads.create(a_thread())) < 10
            with waiting(ended):
                creating = asyncio.create_task(store.threads.create(a_thread()))
            await asyncio.wait_for(ended.begun.wait(), 30)
            ended.limit.end()
            assert await refused_after(creating) < 10
    assert short.ended == ended.ended == 1


async def test_a_server_that_neither_answers_nor_refuses_holds_nobody(cluster, postgres_url, tmp_path):
    async with open_line(cluster, postgres_url) as line, opened(line.url, tmp_path) as store:
        run = await stored_run(store, status="running")
        line.passes.clear()
        with waiting(Waits(WaitLimit(60))):
            begin = asyncio.create_task(store.ledger.begin(run.run_id, "c", "bash_tool", "{}"))
        assert await refused_after(store.probe()) < PROBE_SECONDS + SLACK_SECONDS
        assert await refused_after(store.runs.get(run.run_id)) < 15
        assert not begin.done()
        line.passes.set()
        async with asyncio.timeout(30):
            assert (await begin).attempts == 1
            assert (await store.runs.get(run.run_id)).run_id == run.run_id


async def test_calls_that_wait_for_a_connection_of_a_busy_server_are_answered(postgres_store):
    seconds = AWAY_SECONDS + 1
    long = [postgres_store.database.fetch(f"SELECT pg_sleep({seconds})") for _ in range(4)]
    working = [asyncio.create_task(one) for one in long]
    await asyncio.sleep(0)
    begun = time.monotonic()
    assert await postgres_store.threads.list(None) == []
    assert time.monotonic() - begun > AWAY_SECONDS, "none was busy"
    await asyncio.gather(*working)
    assert postgres_store.database.contact.failure is None


async def test_a_receipt_stays_while_its_call_may_be_tried_again(open_postgres_again):
    from maniple.store.postgres.processes import RECEIPT_SECONDS, sweep_receipts

    ages = {"new": 0, "in an outage": RECEIPT_SECONDS + 7_000, "old": RECEIPT_SECONDS + 7_400}
    async with open_postgres_again(server=False, times=ProcessTimes(outage_seconds=7_200)) as store:
        database = store.database
        await database.execute("DELETE FROM write_receipts")
        for age in ages.values():
            await database.execute(
                "INSERT INTO write_receipts VALUES (gen_random_uuid(), now() - make_interval(secs => %s))",
                (age,),
            )
        async with database.connection() as connection:
            await sweep_receipts(connection, database.outage_seconds)
        left = await database.fetch(
            "SELECT extract(epoch FROM now() - at)::integer / 1000 FROM write_receipts ORDER BY at"
        )
    assert left == [(10,), (0,)]
