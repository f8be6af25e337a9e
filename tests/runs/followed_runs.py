"""Runs of a cluster that clients follow while its database is away or refuses to write."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.grammar import Client
from tests.openai_server import serving
from tests.runs.killing import Site, open_site, together
from tests.runs.workers import CALLS, REFUSED, Workers, begin, cluster_of, connected, script

PING_SECONDS = 0.3


@dataclass
class Stream:
    """What a client receives of a run."""

    text: str = ""
    comments: list[str] = field(default_factory=list[str])

    async def read(self, client: httpx.AsyncClient, run_id: str) -> str | None:
        """Return the status with which the stream of a run ends."""
        async with client.stream("GET", f"/api/runs/{run_id}/events") as answer:
            async for line in answer.aiter_lines():
                self.text += f"{line}\n"
                if line.startswith(":"):
                    self.comments.append(line)
        blocks = [one.split("\n") for one in self.text.split("\n\n") if one.startswith("id: ")]
        numbers = [int(lines[0][4:]) for lines in blocks]
        assert numbers == list(range(1, len(blocks) + 1)), self.text[-2_000:]
        return Client().read([(lines[1][7:], json.loads(lines[2][6:])) for lines in blocks]).status

    @property
    def says_that_it_waits(self) -> bool:
        return ": waiting_for: store" in self.comments


@dataclass(frozen=True)
class FollowedRuns:
    """Runs of a cluster, each followed by a client; the site counts their calls."""

    client: httpx.AsyncClient
    site: Site
    workers: Workers
    run_ids: Sequence[str]
    streams: Sequence[Stream]
    following: Sequence[asyncio.Task[str | None]]

    async def all_say_that_they_wait(self) -> bool:
        return all(one.says_that_it_waits for one in self.streams)

    async def require_completed(self) -> None:
        """Wait for the ends of all runs, and assert that nothing was lost, made again or given up."""
        statuses = {await one for one in self.following}
        records = [(await self.client.get(f"/api/runs/{one}")).json() for one in self.run_ids]
        assert statuses == {"completed"}
        assert {(one["status"], one["waiting_for"]) for one in records} == {("completed", None)}
        calls = len(self.run_ids) * CALLS
        assert (len(self.site.hits), self.site.hits.total()) == (calls, calls), "a call was made again"
        assert {one.process.returncode for one in self.workers.running} == {None}


@asynccontextmanager
async def followed_runs(url: str, folder: Path, *, runs: int, workers: int) -> AsyncIterator[FollowedRuns]:
    """Start workers on the database of `url`, and runs that have each made two calls; follow each of them.

    At the end no run may have been taken over, and no write may have been refused to a worker.
    """
    async with open_site() as site:
        with serving(script(site.url, delay_seconds=0.1)) as model:
            options = {"count": workers, "MANIPLE_SERVER__PING_SECONDS": str(PING_SECONDS)}
            async with cluster_of(url, model.base_url, folder, **options) as (api, working):
                async with httpx.AsyncClient(base_url=api, trust_env=False, timeout=200) as client:
                    run_ids = await together(begin(client, f"r{number}") for number in range(runs))
                    streams = [Stream() for _ in run_ids]
                    following = [
                        asyncio.create_task(one.read(client, run_id))
                        for one, run_id in zip(streams, run_ids, strict=True)
                    ]
                    await site.visited(2 * runs)
                    yield FollowedRuns(client, site, working, run_ids, streams, following)
                assert await working.stop() == [0] * workers
    async with connected(url) as fetch:
        (refused,) = await fetch(REFUSED)
    assert refused == (0, 0), "a run was taken over, or a write was refused"
