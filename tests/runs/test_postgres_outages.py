"""A service whose PostgreSQL is away says so, lets its runs wait, and goes on by itself."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import pytest

from tests.grammar import Client
from tests.openai_server import serving
from tests.runs.killing import open_site, together
from tests.runs.workers import CALLS, REFUSED, begin, cluster_of, connected, script, until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]
PING_SECONDS = 0.3
BOUND_SECONDS = 10.0
"""How long an answer may take while the database is away, on a loaded machine."""
READY_SECONDS = 4.0
WAITED = "SELECT count(DISTINCT run_id) FROM events WHERE strpos(body, 'run_waiting') > 0"
BODY = {"messages": [{"role": "user", "content": "Look at seven pages."}]}


@dataclass
class Stream:
    """What a client receives of a run."""

    text: str = ""
    comments: list[str] = field(default_factory=list[str])

    async def read(self, client: httpx.AsyncClient, run_id: str) -> str:
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


async def ask_while_away(client: httpx.AsyncClient, run_id: str) -> None:
    """Ask for what each client may ask for; all answers come soon and say what is wrong."""

    async def timed(answering, bound: float) -> httpx.Response:
        begun = time.monotonic()
        answer = await answering
        assert time.monotonic() - begun < bound, answer.text
        assert answer.status_code == 503, answer.text
        return answer

    ready = (await timed(client.get("/readyz"), READY_SECONDS)).json()
    assert ready["code"] == "store_unreachable"  # whether the caller has a key cannot be read either
    assert (await client.get("/healthz")).status_code == 200
    reading = [client.get(path) for path in (f"/api/runs/{run_id}", "/api/threads")]
    asked = [*reading, client.post("/api/runs", json=BODY)]
    for answer in await asyncio.gather(*(timed(one, BOUND_SECONDS) for one in asked)):
        assert answer.json()["code"] == "store_unreachable"
        assert int(answer.headers["retry-after"]) > 0


@asynccontextmanager
async def away(cluster) -> AsyncIterator[None]:
    await asyncio.to_thread(cluster.stop, "immediate")
    try:
        yield
    finally:
        await asyncio.to_thread(cluster.start)


async def survive(cluster, url, tmp_path, *, runs: int, workers: int, seconds: float) -> None:
    async with open_site() as site:
        with serving(script(site.url, delay_seconds=0.1)) as model:
            options = {"count": workers, "MANIPLE_SERVER__PING_SECONDS": str(PING_SECONDS)}
            async with cluster_of(url, model.base_url, tmp_path, **options) as (api, working):
                async with httpx.AsyncClient(base_url=api, trust_env=False, timeout=200) as client:
                    run_ids = await together(begin(client, f"r{number}") for number in range(runs))
                    streams = [Stream() for _ in run_ids]
                    following = [
                        asyncio.create_task(one.read(client, run_id))
                        for one, run_id in zip(streams, run_ids, strict=True)
                    ]
                    await site.visited(2 * runs)
                    async with away(cluster):
                        begun = time.monotonic()
                        await ask_while_away(client, run_ids[0])

                        async def all_say_it() -> bool:
                            return all(one.says_that_it_waits for one in streams)

                        await until(all_say_it)
                        await asyncio.sleep(max(0.0, begun + seconds - time.monotonic()))
                        await ask_while_away(client, run_ids[0])
                    back = time.monotonic()

                    async def is_ready() -> bool:
                        return (await client.get("/readyz")).status_code == 200

                    await until(is_ready)
                    ready = time.monotonic() - back
                    statuses = {await one for one in following}
                    ended = time.monotonic() - back
                    records = [(await client.get(f"/api/runs/{one}")).json() for one in run_ids]
                assert [one.process.returncode for one in working.running] == [None] * workers
                assert await working.stop() == [0] * workers
    async with connected(url) as fetch:
        (refused,) = await fetch(REFUSED)
        waited = await fetch(WAITED)
    print(f"away {seconds:g} s: ready after {ready:.1f} s, {runs} runs ended after {ended:.1f} s")
    assert statuses == {"completed"}
    assert {(one["status"], one["waiting_for"]) for one in records} == {("completed", None)}
    assert waited == [(runs,)], "not each run has said that it waited"
    assert (len(site.hits), site.hits.total()) == (runs * CALLS, runs * CALLS), "a call was made again"
    assert refused == (0, 0), "a run was taken over, or a write was refused"


@pytest.mark.slow
async def test_a_database_that_is_away_is_told_and_the_run_goes_on(cluster, postgres_url, tmp_path):
    await survive(cluster, postgres_url, tmp_path, runs=2, workers=1, seconds=3)


@pytest.mark.slow
async def test_a_database_that_is_away_for_a_minute_ends_nothing(cluster, postgres_url, tmp_path):
    await survive(cluster, postgres_url, tmp_path, runs=9, workers=3, seconds=60)
