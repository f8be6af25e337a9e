"""Batches whose processes are killed at random, on either store."""

import asyncio
import json
import random
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import httpx

from tests.openai_server import BRIEF, serving
from tests.runs.killing import Mortal
from tests.runs.workers import cluster_of, connected
from tests.serving import environment

SCRIPT = {**BRIEF, "by_history": True}
SETTINGS: dict[str, Any] = {
    "MANIPLE_SANDBOX__BACKEND": "off",
    "MANIPLE_BROWSER__ENABLED": "false",
}
HOOK = {"url": "http://127.0.0.1:8080/nobody", "statuses": ["completed"]}
LOOK_SECONDS = 0.05
_RUNS = "SELECT run_id, status FROM runs"
_REPORTED = "SELECT run_id FROM webhook_deliveries"


@dataclass(frozen=True)
class Survived:
    """What became of a batch of `count` items."""

    count: int
    kills: int
    seconds: float
    results: Sequence[Mapping[str, Any]]
    runs: Sequence[tuple[str, str]]
    """The id and the status of each run."""
    reported: Sequence[str]
    """The run of each delivery to the webhook."""

    def require_each_once(self) -> None:
        """Assert that each item was accepted with one run of its own, and that its end was reported once."""
        assert [one["number"] for one in self.results] == [*range(1, self.count + 1)]
        assert Counter(one["state"] for one in self.results) == {"accepted": self.count}
        assert sorted(self.runs) == sorted((one["run_id"], "completed") for one in self.results)
        assert sorted(self.reported) == sorted(run_id for run_id, _ in self.runs)


class Victims(Protocol):
    """The processes that work on a batch."""

    def client(self) -> httpx.AsyncClient:
        """Return a client of the one that accepts requests."""
        ...

    async def kill_one(self) -> None:
        """Kill one that works (SIGKILL), and start another one."""
        ...

    async def fetch(self, sql: str) -> Sequence[tuple[Any, ...]]:
        """Return rows of the database."""
        ...


async def survive(victims: Victims, count: int, kills: int, parallel: int, seconds: float) -> Survived:
    """Do a batch while processes are killed at random moments; raises TimeoutError after `seconds`."""
    moments = sorted(random.Random(count).sample(range(1, count * 9 // 10), kills))
    begun = time.monotonic()
    async with asyncio.timeout(seconds):
        async with victims.client() as client:
            assert (await client.post("/api/webhooks", json=HOOK)).status_code == 201
            body = {"items": [f"{number}+3=?" for number in range(count)], "parallel": parallel}
            path = (await client.post("/api/batches", json=body)).raise_for_status().headers["location"]
        for moment in moments:
            async with victims.client() as client:
                await _reach(client, path, moment)
            await victims.kill_one()
        async with victims.client() as client:
            await _reach(client, path, count)
            lines = (await client.get(f"{path}/results")).text.splitlines()
    took = time.monotonic() - begun
    runs = [(row[0], row[1]) for row in await victims.fetch(_RUNS)]
    reported = [row[0] for row in await victims.fetch(_REPORTED)]
    return Survived(count, kills, took, [json.loads(line) for line in lines], runs, reported)


async def _reach(client: httpx.AsyncClient, path: str, count: int) -> None:
    """Wait until so many items are accepted."""
    while (await client.get(path)).json()["counts"].get("accepted", 0) < count:  # noqa: ASYNC110
        await asyncio.sleep(LOOK_SECONDS)


@dataclass(frozen=True)
class _OneServer:
    server: Mortal
    folder: Path

    def client(self) -> httpx.AsyncClient:
        return self.server.client()

    async def kill_one(self) -> None:
        await self.server.kill()
        await self.server.start()

    async def fetch(self, sql: str) -> Sequence[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.folder / "data" / "maniple.db")) as connection:
            return connection.execute(sql).fetchall()


@asynccontextmanager
async def on_sqlite(folder: Path) -> AsyncIterator[Victims]:
    """Run one server on SQLite."""
    with serving(SCRIPT) as model:
        fetched = {"MANIPLE_FETCH__ALLOW_PRIVATE": "127.0.0.0/8"}
        async with Mortal(environment(model.base_url, folder, **SETTINGS, **fetched), folder) as server:
            yield _OneServer(server, folder)


@dataclass(frozen=True)
class _Cluster:
    url: str
    kill: Callable[[], Awaitable[None]]
    rows: Callable[[str], Awaitable[Sequence[tuple[Any, ...]]]]

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, trust_env=False, timeout=120)

    async def kill_one(self) -> None:
        await self.kill()

    async def fetch(self, sql: str) -> Sequence[tuple[Any, ...]]:
        return await self.rows(sql)


@asynccontextmanager
async def on_postgres(url: str, folder: Path) -> AsyncIterator[Victims]:
    """Run workers and one process that accepts requests, on an empty database of today's schema."""
    chosen = random.Random(1)
    with serving(SCRIPT) as model:
        async with (
            cluster_of(url, model.base_url, folder, **SETTINGS) as (api, workers),
            connected(url) as rows,
        ):

            async def kill() -> None:
                await workers.kill(chosen.choice(workers.running))
                await workers.add()

            yield _Cluster(api, kill, rows)
