"""Workers that sleep beyond their lease have no effect when they wake, whether they leave or live on."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from maniple.runs.queue.worker import REFUSED_STATUS
from tests.cli.processes import MANIPLE
from tests.grammar import Client
from tests.openai_server import OpenAIServer, serving
from tests.runs.audit import begin_audit, read_audit, remove_fences
from tests.runs.killing import open_site, together
from tests.runs.workers import (
    DRIVEN,
    REFUSED,
    WORKERS,
    Fetch,
    Worker,
    Workers,
    begin,
    cluster_of,
    connected,
    describe_times,
    read_events,
    script,
    until,
    watch_driver,
)

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(300)]
LASTING = Path(__file__).with_name("lasting_worker.py")
THREADS = 8
AT_ONCE = 2
"""How many workers are put to sleep in a round."""


def hanging_script(site_url: str) -> dict[str, Any]:
    """Return a script whose model waits in the middle of each run until it is released."""
    replies = script(site_url)
    replies["researcher"][1]["hang"] = True
    return replies


@dataclass
class Zombies:
    """A cluster whose workers are put to sleep until others have taken their runs over.

    A round is about one run of each thread; those of later rounds wait behind it.
    """

    fetch: Fetch
    client: httpx.AsyncClient
    model: OpenAIServer
    workers: Workers
    gaps: list[float] = field(default_factory=list[float])
    following: list[asyncio.Task[list]] = field(default_factory=list[asyncio.Task[list]])

    async def ask(self, rounds: int) -> None:
        """Begin the runs of all rounds."""
        threads = [""] * THREADS
        for round_ in range(rounds):
            begun = [begin(self.client, f"r{round_}x{at}", thread) for at, thread in enumerate(threads)]
            run_ids = await together(begun)
            runs = [(await self.client.get(f"/api/runs/{one}")).json() for one in run_ids]
            threads = [one["thread_id"] for one in runs]
            self.following += [asyncio.create_task(read_events(self.client, one)) for one in run_ids]

    async def wake_after_loss(self) -> list[Worker]:
        """Put workers with runs to sleep, until others have those; return the woken ones."""
        await self.asking(THREADS)
        driven = {one: await self.fetch(DRIVEN, one.pid) for one in self.workers.running}
        busy = sorted((one for one in driven if driven[one]), key=lambda one: -len(driven[one]))
        sleepers, lost = busy[:AT_ONCE], 0
        slept = time.monotonic()
        for one in sleepers:
            one.process.send_signal(signal.SIGSTOP)
        try:
            for one in sleepers:
                runs = [run_id for (run_id,) in driven[one]]
                self.gaps += await watch_driver(self.fetch, runs, one.pid, slept)
                lost += len(runs)
            await self.asking(THREADS + lost)
        finally:
            for one in sleepers:
                one.process.send_signal(signal.SIGCONT)
        # What both of them asked is answered now: who has lost the run has something to write.
        await asyncio.to_thread(self.model.release)
        return sleepers

    async def asking(self, calls: int) -> None:
        """Wait until so many calls of researchers, or more, wait for the model."""
        await asyncio.to_thread(self.model.wait_for, lambda stats: stats["active"] >= calls)

    async def statuses(self) -> set[str]:
        """Return how all runs have ended, as their clients have read it."""
        return {Client().read(frames).status for frames in await asyncio.gather(*self.following)}


@asynccontextmanager
async def open_zombies(
    url: str, folder: Path, program: Path, rounds: int, count: int = WORKERS
) -> AsyncIterator[Zombies]:
    async with open_site() as site, connected(url) as fetch:
        await begin_audit(fetch)
        with serving(hanging_script(site.url)) as model:
            async with cluster_of(url, model.base_url, folder, program=program, count=count) as (
                api,
                workers,
            ):
                async with httpx.AsyncClient(base_url=api, trust_env=False, timeout=200) as client:
                    opened = Zombies(fetch, client, model, workers)
                    try:
                        await opened.ask(rounds)
                        yield opened
                    finally:
                        for task in opened.following:
                            task.cancel()
                await workers.stop()
        refused = await fetch(REFUSED)
    print(f"taken over: {describe_times(opened.gaps)}; (take-overs, refused writes): {refused}")


async def test_workers_that_sleep_beyond_their_lease_leave_when_they_wake(postgres_url, tmp_path):
    rounds = 3
    async with open_zombies(postgres_url, tmp_path, MANIPLE, rounds) as here:
        for _ in range(rounds):
            woken = await here.wake_after_loss()
            for one in woken:
                here.workers.running.remove(one)
                assert await one.ended() == REFUSED_STATUS
            for _ in woken:
                await here.workers.add()
        assert await here.statuses() == {"completed"}
        noted = await read_audit(here.fetch)
    assert (noted.zombie_rows, noted.overlaps) == ({}, 0)


async def test_a_worker_that_gets_a_run_which_it_drives_leaves_and_does_not_begin_it_again(
    postgres_url, tmp_path
):
    async with open_zombies(postgres_url, tmp_path, MANIPLE, 1, count=1) as here:
        await here.asking(THREADS)
        (worker,) = here.workers.running
        # As the sweep of another process does, which took this one for dead.
        await here.fetch(
            "SELECT procrastinate_retry_job_v2(min(id), now(), NULL, NULL, NULL) FROM procrastinate_jobs"
        )
        assert await worker.ended() == REFUSED_STATUS
        here.workers.running.remove(worker)
        assert here.model.stats["max_active"] == THREADS
        await here.workers.add()
        await here.asking(THREADS)
        await asyncio.to_thread(here.model.release)
        assert await here.statuses() == {"completed"}


async def test_without_the_fences_they_would_write(postgres_url, tmp_path):
    async with open_zombies(postgres_url, tmp_path, LASTING, 1) as here:
        await remove_fences(here.fetch)
        await here.wake_after_loss()
        await until(lambda: here.fetch("SELECT 1 FROM zombie_rows LIMIT 1"))
        noted = await read_audit(here.fetch)
    print(f"rows of zombies without fences: {noted.zombie_rows}, overlaps: {noted.overlaps}")
