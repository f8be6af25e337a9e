"""Workers are replaced one after another, as an upgrade does, while runs are under way and more begin."""

import asyncio
import random
import time

import httpx
import pytest

from tests.grammar import Client
from tests.openai_server import serving
from tests.runs.killing import open_site, together
from tests.runs.workers import (
    CALLS,
    DRIVEN,
    REFUSED,
    WORKERS,
    begin,
    cluster_of,
    connected,
    describe_times,
    read_events,
    script,
    watch_driver,
)

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(300)]
RUNS = 24
PATIENT = {"MANIPLE_RUNS__LEASE_SECONDS": "20", "MANIPLE_RUNS__DRAIN_SECONDS": "20"}
"""On a busy machine no worker is taken for dead, and each has the time for what is under way."""
SEED = 20261204


async def test_workers_that_are_replaced_under_load_give_back_all_runs_and_repeat_nothing(
    postgres_url, tmp_path
):
    moments = sorted(random.Random(SEED).sample(range(RUNS, RUNS * CALLS * 3 // 4), WORKERS))
    gaps, statuses = list[float](), list[int | None]()
    async with open_site() as site, connected(postgres_url) as fetch:
        with serving(script(site.url, delay_seconds=0.05)) as model:
            async with cluster_of(postgres_url, model.base_url, tmp_path, **PATIENT) as (api, workers):
                async with httpx.AsyncClient(base_url=api, trust_env=False, timeout=200) as client:
                    asked = [f"r{number}" for number in range(RUNS)]
                    each = RUNS // (WORKERS + 1)
                    following, given_back = list[asyncio.Task](), 0

                    async def ask() -> None:
                        names = [asked.pop() for _ in range(each)]
                        for run_id in await together(begin(client, name) for name in names):
                            following.append(asyncio.create_task(read_events(client, run_id)))

                    await ask()
                    for old, moment in zip([*workers.running], moments, strict=True):
                        await ask()
                        await site.visited(moment * each * len(following) // (RUNS * each))
                        await workers.add()
                        driven = [one for (one,) in await fetch(DRIVEN, old.pid)]
                        left = time.monotonic()
                        watching = asyncio.create_task(watch_driver(fetch, driven, old.pid, left))
                        statuses.append(await workers.leave(old))
                        gaps += await watching
                        given_back += len(driven)
                    frames = await asyncio.gather(*following)
                statuses += await workers.stop()
        ended = await fetch("SELECT status, count(*) FROM runs GROUP BY status")
        (refused,) = await fetch(REFUSED)
    print(f"driven elsewhere after SIGTERM: {describe_times(gaps)}")
    assert given_back > 0
    assert {Client().read(one).status for one in frames} == {"completed"}
    assert ended == [("completed", RUNS)]
    assert len(site.hits) == RUNS * CALLS
    assert site.hits.total() == RUNS * CALLS, "a page was read again"
    assert statuses == [0] * 2 * WORKERS
    assert refused == (0, 0), "a run was taken over, or a write was refused"
