"""Processes of `maniple work` behind a process of `maniple serve --role api`, and what runs on them."""

import asyncio
import json
import signal
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx

from tests.cli.processes import MANIPLE, start
from tests.cli.test_serve import service
from tests.openai_server import SIMPLE, call, reply
from tests.serving import environment
from tests.team import plan, step

CALLS = 7
WORKERS = 3
PLACES = 16
"""How many runs a worker drives at once."""
DRIVEN = "SELECT run_id FROM runs JOIN processes USING (process) WHERE pid = %s AND status = 'running'"
DRIVEN_ELSEWHERE = (
    "SELECT run_id FROM runs LEFT JOIN processes USING (process) WHERE run_id = ANY(%s) "
    "AND (status <> 'running' OR pid <> %s)"
)
STANDS = (
    "SELECT run_id, runs.status, job, pid, clock_timestamp() - beat_at, array(SELECT (id, status, "
    "args ->> 'run_id')::text FROM procrastinate_jobs WHERE lock = thread_id) "
    "FROM runs LEFT JOIN processes USING (process) WHERE run_id = ANY(%s)"
)
"""Who drives runs, when it has beaten last, and which jobs their threads have."""
REFUSED = (
    "SELECT (SELECT last_value - 1 + is_called::integer FROM take_overs), "
    "(SELECT last_value - 1 + is_called::integer FROM fenced_writes)"
)
"""How many runs were taken over, and how many writes the fences have refused."""
T = TypeVar("T")
Fetch = Callable[..., Awaitable[list[tuple[Any, ...]]]]


def script(site_url: str, **options: Any) -> dict[str, Any]:
    """Return a script by which the researcher reads `CALLS` pages, one after another.

    `options` are further keys of its replies.
    """
    crawls = [call("crawl_tool", url=f"{site_url}/{{run}}/{number}") | options for number in range(CALLS)]
    return {
        "by_history": True,
        "coordinator": SIMPLE["coordinator"],
        "planner": [{"chunks": [json.dumps(plan(step("researcher"), step("reporter")))]}],
        "researcher": [*crawls, reply("found by {run}")],
        "reporter": [reply("the report of {run}")],
    }


@dataclass(eq=False)
class Worker:
    """A process of `maniple work`, whose output is read to its end."""

    process: Process
    output: asyncio.Task[tuple[bytes, bytes]]

    @property
    def pid(self) -> int:
        return self.process.pid

    async def ended(self, number: signal.Signals | None = None, seconds: float = 60) -> int | None:
        """Wait for its end, after a signal if one is given; return its status."""
        if number is not None and self.process.returncode is None:
            self.process.send_signal(number)
        async with asyncio.timeout(seconds):
            await asyncio.shield(self.output)
        return self.process.returncode


@dataclass
class Workers:
    """Processes of `maniple work`, some of which are killed and replaced."""

    env: Mapping[str, str]
    folder: Path
    program: Path = MANIPLE
    places: int = PLACES
    running: list[Worker] = field(default_factory=list)

    async def add(self, **variables: str) -> Worker:
        """Start a worker; it takes runs when this returns. `variables` are those of its own."""
        env = {**self.env, **variables}
        arguments = ("work", "--concurrency", str(self.places))
        process = await start(self.program, *arguments, folder=self.folder, env=env, stdin=DEVNULL)
        assert process.stderr
        async with asyncio.timeout(60):
            while b"Driving up to" not in (line := await process.stderr.readline()):
                assert line, "the worker has ended"
        worker = Worker(process, asyncio.create_task(process.communicate()))
        self.running.append(worker)
        return worker

    async def kill(self, worker: Worker) -> None:
        self.running.remove(worker)
        await worker.ended(signal.SIGKILL)

    async def leave(self, worker: Worker) -> int | None:
        """Have a worker give back its runs and end; return its status."""
        self.running.remove(worker)
        return await worker.ended(signal.SIGTERM)

    async def stop(self) -> list[int | None]:
        """End all; return their statuses."""
        return await asyncio.gather(*(self.leave(worker) for worker in [*self.running]))


@asynccontextmanager
async def cluster_of(
    url: str,
    model_url: str,
    folder: Path,
    *,
    count: int = WORKERS,
    program: Path = MANIPLE,
    places: int = PLACES,
    **variables: str,
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
    workers = Workers(env, folder, program, places)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(workers.stop)
        api = await stack.enter_async_context(open_api(workers))
        for _ in range(count):
            await workers.add()
        yield api, workers


@asynccontextmanager
async def open_api(workers: Workers) -> AsyncIterator[str]:
    """Run a process that accepts requests for these workers; yield its URL."""
    given = {name: value for name, value in workers.env.items() if name.startswith("MANIPLE_")}
    arguments = ("--port", "0", "--role", "api")
    async with service(workers.folder, workers.env["BASIC_BASE_URL"], *arguments, **given) as (url, _):
        yield url


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


async def until(ask: Callable[[], Awaitable[T]], seconds: float = 60) -> T:
    """Ask again until the answer is true; return it. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while not (answer := await ask()):  # noqa: ASYNC110 - another process changes it
            await asyncio.sleep(0.02)
    return answer


async def watch_driver(fetch: Fetch, run_ids: Sequence[str], pid: int, begun: float) -> list[float]:
    """Return after how many seconds since `begun` each run was driven by another process, or had ended."""
    found: dict[str, float] = {}

    async def have_all() -> bool:
        for (run_id,) in await fetch(DRIVEN_ELSEWHERE, run_ids, pid):
            found.setdefault(run_id, time.monotonic() - begun)
        return len(found) == len(run_ids)

    try:
        await until(have_all)
    except TimeoutError:
        raise AssertionError(f"not taken over: {await fetch(STANDS, run_ids)}") from None
    return [*found.values()]


def describe_times(seconds: Sequence[float]) -> str:
    """Return the figures of some times, to be printed."""
    if not seconds:
        return "-"
    ordered = sorted(seconds)
    p50, p95 = (ordered[round(part * (len(ordered) - 1))] for part in (0.5, 0.95))
    figures = f"p50 {p50 * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms, most {ordered[-1] * 1000:.0f} ms"
    return f"{figures} (n {len(ordered)})"


async def begin(client: httpx.AsyncClient, name: str, thread: str = "") -> str:
    """Begin a run of `script`, on a new thread if none is given; return its id."""
    body = {"messages": [{"role": "user", "content": f"Look at seven pages. #run={name}"}]}
    thread = thread or (await client.post("/api/threads", json={})).json()["thread_id"]
    answer = await client.post(f"/api/threads/{thread}/runs", json=body)
    assert answer.status_code == 202, answer.text
    return answer.json()["run_id"]


async def read_events(client: httpx.AsyncClient, run_id: str):
    text = (await client.get(f"/api/runs/{run_id}/events")).text
    blocks = [block.split("\n") for block in text.split("\n\n") if block.startswith("id: ")]
    assert [int(lines[0][4:]) for lines in blocks] == list(range(1, len(blocks) + 1))
    return [(lines[1][7:], json.loads(lines[2][6:])) for lines in blocks]
