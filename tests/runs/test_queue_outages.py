"""Workers survive a database that crashes."""

import asyncio
import time

import httpx
import pytest

from tests.grammar import Client
from tests.openai_server import serving
from tests.runs.killing import open_site, together
from tests.runs.workers import (
    CALLS,
    REFUSED,
    WORKERS,
    begin,
    cluster_of,
    connected,
    describe_times,
    read_events,
    script,
)

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(300)]
RUNS = 12
CRASHES = 4
CUTS = 2


async def test_a_database_that_crashes_and_returns_ends_no_worker_and_repeats_no_call(
    cluster, postgres_url, tmp_path
):
    away = list[float]()
    async with open_site() as site:
        with serving(script(site.url, delay_seconds=0.05)) as model:
            async with cluster_of(postgres_url, model.base_url, tmp_path) as (api, workers):
                async with httpx.AsyncClient(base_url=api, trust_env=False, timeout=200) as client:
                    run_ids = await together(begin(client, f"r{number}") for number in range(RUNS))
                    following = [asyncio.create_task(read_events(client, one)) for one in run_ids]
                    for number in range(CRASHES):
                        await site.visited((number + 1) * RUNS * CALLS // (CRASHES + 2))
                        crashed = time.monotonic()
                        await asyncio.to_thread(cluster.stop, "immediate")
                        await asyncio.to_thread(cluster.start)
                        away.append(time.monotonic() - crashed)
                    statuses = {Client().read(frames).status for frames in await asyncio.gather(*following)}
                assert [one.process.returncode for one in workers.running] == [None] * WORKERS
                assert await workers.stop() == [0] * WORKERS
    async with connected(postgres_url) as fetch:
        (refused,) = await fetch(REFUSED)
    print(f"{CRASHES} crashes, the database away for: {describe_times(away)}")
    assert statuses == {"completed"}
    assert (len(site.hits), site.hits.total()) == (RUNS * CALLS, RUNS * CALLS), "a call was made again"
    assert refused == (0, 0), "a run was taken over, or a write was refused"
