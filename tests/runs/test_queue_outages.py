"""Workers survive a database that crashes, and one that is cut off from it has left when others go on."""

import asyncio
import time

import httpx
import pytest

from maniple.runs.queue.worker import REFUSED_STATUS
from tests.grammar import Client
from tests.openai_server import serving
from tests.postgres import open_line
from tests.runs.audit import begin_audit, read_audit
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


async def test_a_worker_that_is_cut_off_from_the_database_leaves_and_has_no_effect(
    cluster, postgres_url, tmp_path
):
    gaps, departures, lost = list[float](), list[float](), 0
    async with open_site() as site, connected(postgres_url) as fetch:
        await begin_audit(fetch)
        with serving(script(site.url, delay_seconds=0.1)) as model:
            async with cluster_of(postgres_url, model.base_url, tmp_path, count=1) as (api, workers):
                async with httpx.AsyncClient(base_url=api, trust_env=False, timeout=200) as client:
                    following = list[asyncio.Task]()
                    for cut in range(CUTS):
                        async with open_line(cluster, postgres_url) as line:
                            apart = await workers.add(MANIPLE_STORE__URL=line.url)
                            names = [f"r{cut}x{number}" for number in range(RUNS)]
                            for run_id in await together(begin(client, one) for one in names):
                                following.append(asyncio.create_task(read_events(client, run_id)))
                            await site.visited(cut * RUNS * CALLS + RUNS)
                            driven = [one for (one,) in await fetch(DRIVEN, apart.pid)]
                            line.passes.clear()
                            begun = time.monotonic()
                            watching = asyncio.create_task(watch_driver(fetch, driven, apart.pid, begun))
                            assert await apart.ended() == REFUSED_STATUS
                            workers.running.remove(apart)
                            departures.append(time.monotonic() - begun)
                            gaps += await watching
                            lost += len(driven)
                        # What had been on its way is read now.
                    statuses = {Client().read(frames).status for frames in await asyncio.gather(*following)}
        noted = await read_audit(fetch)
    print(f"left after the cut: {describe_times(departures)}; taken over: {describe_times(gaps)}")
    assert lost > 0, "the worker had nothing to lose"
    assert statuses == {"completed"}
    assert (noted.zombie_rows, noted.overlaps) == ({}, 0)
    repeated = site.hits.total() - len(site.hits)
    assert (len(site.hits), repeated <= lost) == (CUTS * RUNS * CALLS, True), "more than the call in flight"
