"""Workers survive a database that crashes, and one that is cut off from it has left when others go on."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import httpx
import pytest

from maniple.runs.queue.worker import REFUSED_STATUS
from tests.grammar import Client
from tests.openai_server import serving
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


@dataclass
class Line:
    """A TCP port that leads to a server on a Unix socket, until it is cut: then nothing passes any more."""

    socket: str
    port: int = 0
    passes: asyncio.Event = field(default_factory=asyncio.Event)
    ends: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(self.socket)
        self.ends |= {writer, back}
        await asyncio.gather(self._pump(reader, back), self._pump(there, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                await self.passes.wait()
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def open_line(socket: str) -> AsyncIterator[Line]:
    line = Line(socket)
    line.passes.set()
    async with await asyncio.start_server(line.connect, "127.0.0.1", 0) as server:
        line.port = server.sockets[0].getsockname()[1]
        try:
            yield line
        finally:
            line.passes.set()
            for end in line.ends:
                end.close()


async def test_a_worker_that_is_cut_off_from_the_database_leaves_and_has_no_effect(
    cluster, postgres_url, tmp_path
):
    name = postgres_url.partition("?")[0].rpartition("/")[2]
    gaps, departures, lost = list[float](), list[float](), 0
    async with open_site() as site, connected(postgres_url) as fetch:
        await begin_audit(fetch)
        with serving(script(site.url, delay_seconds=0.1)) as model:
            async with cluster_of(postgres_url, model.base_url, tmp_path, count=1) as (api, workers):
                async with httpx.AsyncClient(base_url=api, trust_env=False, timeout=200) as client:
                    following = list[asyncio.Task]()
                    for cut in range(CUTS):
                        async with open_line(f"{cluster.socket}/.s.PGSQL.5432") as line:
                            url = f"postgresql://postgres@127.0.0.1:{line.port}/{name}"
                            apart = await workers.add(MANIPLE_STORE__URL=url)
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
