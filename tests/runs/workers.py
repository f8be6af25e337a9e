"""Processes of `maniple work` behind a process of `maniple serve --role api`, and what runs on them."""

import asyncio
import json
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.cli.processes import MANIPLE, start
from tests.cli.test_serve import service
from tests.openai_server import SIMPLE, call, reply
from tests.serving import environment
from tests.team import plan, step

CALLS = 7
WORKERS = 3
Fetch = Callable[..., Awaitable[list[tuple[Any, ...]]]]


def script(site_url: str) -> dict[str, Any]:
    """Return a script by which the researcher reads `CALLS` pages, one after another."""
    crawls = [call("crawl_tool", url=f"{site_url}/{{run}}/{number}") for number in range(CALLS)]
    return {
        "by_history": True,
        "coordinator": SIMPLE["coordinator"],
        "planner": [{"chunks": [json.dumps(plan(step("researcher"), step("reporter")))]}],
        "researcher": [*crawls, reply("found by {run}")],
        "reporter": [reply("the report of {run}")],
    }


@dataclass
class Workers:
    """Processes of `maniple work`, some of which are killed and replaced."""

    env: Mapping[str, str]
    folder: Path
    running: list[Process] = field(default_factory=list)

    async def add(self) -> None:
        process = await start(
            MANIPLE, "work", "--concurrency", "16", folder=self.folder, env=self.env, stdin=DEVNULL
        )
        assert process.stderr
        async with asyncio.timeout(60):
            while b"Driving up to" not in (line := await process.stderr.readline()):
                assert line, "the worker has ended"
        self.running.append(process)

    async def kill(self, process: Process) -> None:
        process.kill()
        self.running.remove(process)
        await process.communicate()

    async def stop(self) -> list[int | None]:
        """End all; return their statuses."""
        for process in self.running:
            process.terminate()
        await asyncio.gather(*(process.communicate() for process in self.running))
        return [process.returncode for process in self.running]


@asynccontextmanager
async def cluster_of(
    url: str, model_url: str, folder: Path, *, count: int = WORKERS, **variables: str
) -> AsyncIterator[tuple[str, Workers]]:
    """Run one process that accepts requests, and `count` that work; yield the URL of the first one."""
    env = environment(
        model_url,
        folder,
        MANIPLE_FETCH__ALLOW_PRIVATE="127.0.0.0/8",
        MANIPLE_STORE__BACKEND="postgres",
        MANIPLE_STORE__URL=url,
        MANIPLE_STORE__POOL="4",
        **variables,
    )
    workers = Workers(env, folder)
    given = {name: value for name, value in env.items() if name.startswith("MANIPLE_")}
    async with AsyncExitStack() as stack:
        stack.push_async_callback(workers.stop)
        arguments = ("--port", "0", "--role", "api")
        api, _ = await stack.enter_async_context(service(folder, model_url, *arguments, **given))
        for _ in range(count):
            await workers.add()
        yield api, workers


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Fetch]:
    """Connect to the database, and yield what runs a statement there and returns its rows."""
    import psycopg

    options = "-c search_path=maniple"
    async with await psycopg.AsyncConnection.connect(url, autocommit=True, options=options) as asked:

        async def fetch(sql: str, *values: object) -> list[tuple[Any, ...]]:
            cursor = await asked.execute(sql.encode(), values)
            return await cursor.fetchall() if cursor.description is not None else []

        yield fetch


async def begin(client: httpx.AsyncClient, name: str) -> str:
    body = {"messages": [{"role": "user", "content": f"Look at seven pages. #run={name}"}]}
    thread = (await client.post("/api/threads", json={})).json()["thread_id"]
    answer = await client.post(f"/api/threads/{thread}/runs", json=body)
    assert answer.status_code == 202, answer.text
    return answer.json()["run_id"]


async def read_events(client: httpx.AsyncClient, run_id: str):
    text = (await client.get(f"/api/runs/{run_id}/events")).text
    blocks = [block.split("\n") for block in text.split("\n\n") if block.startswith("id: ")]
    assert [int(lines[0][4:]) for lines in blocks] == list(range(1, len(blocks) + 1))
    return [(lines[1][7:], json.loads(lines[2][6:])) for lines in blocks]
