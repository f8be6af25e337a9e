"""A service whose PostgreSQL is away says so, lets its runs wait, and goes on by itself."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.runs.followed_runs import followed_runs
from tests.runs.workers import connected, until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]
BOUND_SECONDS = 10.0
"""How long an answer may take while the database is away, on a loaded machine."""
READY_SECONDS = 4.0
WAITED = "SELECT count(DISTINCT run_id) FROM events WHERE strpos(body, 'run_waiting') > 0"
BODY = {"messages": [{"role": "user", "content": "Look at seven pages."}]}


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
    async with followed_runs(url, tmp_path, runs=runs, workers=workers) as it:
        async with away(cluster):
            begun = time.monotonic()
            await ask_while_away(it.client, it.run_ids[0])
            await until(it.all_say_that_they_wait)
            await asyncio.sleep(max(0.0, begun + seconds - time.monotonic()))
            await ask_while_away(it.client, it.run_ids[0])
        back = time.monotonic()

        async def is_ready() -> bool:
            return (await it.client.get("/readyz")).status_code == 200

        await until(is_ready)
        ready = time.monotonic() - back
        await it.require_completed()
        ended = time.monotonic() - back
    async with connected(url) as fetch:
        waited = await fetch(WAITED)
    print(f"away {seconds:g} s: ready after {ready:.1f} s, {runs} runs ended after {ended:.1f} s")
    assert waited == [(runs,)], "not each run has said that it waited"


@pytest.mark.slow
async def test_a_database_that_is_away_is_told_and_the_run_goes_on(cluster, postgres_url, tmp_path):
    await survive(cluster, postgres_url, tmp_path, runs=2, workers=1, seconds=3)


@pytest.mark.slow
async def test_a_database_that_is_away_for_a_minute_ends_nothing(cluster, postgres_url, tmp_path):
    await survive(cluster, postgres_url, tmp_path, runs=9, workers=3, seconds=60)
