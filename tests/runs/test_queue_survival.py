"""Workers that are killed lose no run, and nothing that is on record is done twice."""

import asyncio
import json
import random
import statistics
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.cli.processes import MANIPLE, start
from tests.cli.test_serve import service
from tests.grammar import Client
from tests.openai_server import SIMPLE, call, reply, serving
from tests.runs.killing import open_site, together
from tests.serving import environment
from tests.sizes import sizes
from tests.team import plan, step

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(480)]
CALLS, SEED, WORKERS = 7, 20261128, 3
ON_RECORD = "SELECT arguments FROM tool_calls WHERE result IS NOT NULL"
DRIVEN = "SELECT run_id FROM runs JOIN processes USING (process) WHERE pid = %s AND status = 'running'"
TAKEN_OVER = (
    "SELECT run_id FROM runs JOIN processes USING (process) WHERE run_id = ANY(%s) AND (status <> 'running' "
    "OR pid <> %s)"
)


def script(site_url: str):
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
async def cluster_of(url: str, model_url: str, folder: Path) -> AsyncIterator[tuple[str, Workers]]:
    env = environment(
        model_url,
        folder,
        MANIPLE_FETCH__ALLOW_PRIVATE="127.0.0.0/8",
        MANIPLE_STORE__BACKEND="postgres",
        MANIPLE_STORE__URL=url,
        MANIPLE_STORE__POOL="4",
    )
    workers = Workers(env, folder)
    variables = {name: value for name, value in env.items() if name.startswith("MANIPLE_")}
    async with AsyncExitStack() as stack:
        stack.push_async_callback(workers.stop)
        arguments = ("--port", "0", "--role", "api")
        api, _ = await stack.enter_async_context(service(folder, model_url, *arguments, **variables))
        for _ in range(WORKERS):
            await workers.add()
        yield api, workers


@pytest.mark.parametrize(("runs", "kills"), sizes((12, 2), (48, 6)))
async def test_a_killed_worker_loses_no_run(postgres_url, tmp_path, runs, kills):
    import psycopg

    dice, gaps = random.Random(SEED), list[float]()
    moments = sorted(dice.sample(range(runs * CALLS // 10, runs * CALLS * 3 // 4), kills))
    visits: dict[str, int] = {}
    async with (
        open_site() as site,
        await psycopg.AsyncConnection.connect(
            postgres_url, autocommit=True, options="-c search_path=maniple"
        ) as asked,
    ):

        async def fetch(sql: str, *values: object) -> list[tuple]:
            return await (await asked.execute(sql.encode(), values)).fetchall()

        with serving(script(site.url)) as model:
            async with cluster_of(postgres_url, model.base_url, tmp_path) as (api, workers):
                async with httpx.AsyncClient(base_url=api, trust_env=False, timeout=300) as client:
                    run_ids = await together(_begin(client, f"r{n}") for n in range(runs))
                    following = [asyncio.create_task(_told(client, one)) for one in run_ids]
                    for moment in moments:
                        await site.visited(moment)
                        victim = dice.choice(workers.running)
                        driven = [one for (one,) in await fetch(DRIVEN, victim.pid)]
                        await workers.kill(victim)
                        killed = time.monotonic()
                        for (arguments,) in await fetch(ON_RECORD):
                            path = "/" + json.loads(arguments)["url"].split("/", 3)[3]
                            visits.setdefault(path, site.hits[path])
                        await workers.add()
                        gaps += await _gaps(fetch, driven, victim.pid, killed)
                    told = await asyncio.gather(*following)
                statuses = await workers.stop()
                workers.running.clear()
        ended = await fetch("SELECT status, count(*) FROM runs GROUP BY status")
        left = await fetch("SELECT status::text, attempts FROM procrastinate_jobs")
    # A job that is left says "drive this run", which has ended: whoever takes it finds nothing to do.
    shown = f"{min(gaps):.1f} to {max(gaps):.1f} s, median {statistics.median(gaps):.1f} s" if gaps else "-"
    print(f"taken over after {shown} ({len(gaps)} runs); jobs left: {left}")
    for number, frames in enumerate(told):
        read = Client().read(frames)
        assert read.status == "completed", (number, frames[-3:])
        assert f"the report of r{number}" in frames[-1][1]["messages"][-1]["content"]
    assert ended == [("completed", runs)]
    assert len(site.hits) == runs * CALLS
    repeated = {path: hits for path, hits in visits.items() if site.hits[path] > hits}
    assert repeated == {}, "recorded calls were run again"
    assert statuses == [0] * WORKERS


async def _gaps(fetch, driven: list[str], pid: int, killed: float) -> list[float]:
    """Return how long each run of a killed process waited for another one, in seconds."""
    found: dict[str, float] = {}
    async with asyncio.timeout(60):
        while len(found) < len(driven):
            for (run_id,) in await fetch(TAKEN_OVER, driven, pid):
                found.setdefault(run_id, time.monotonic() - killed)
            await asyncio.sleep(0.05)
    return [*found.values()]


async def _begin(client: httpx.AsyncClient, name: str) -> str:
    body = {"messages": [{"role": "user", "content": f"Look at seven pages. #run={name}"}]}
    thread = (await client.post("/api/threads", json={})).json()["thread_id"]
    answer = await client.post(f"/api/threads/{thread}/runs", json=body)
    assert answer.status_code == 202, answer.text
    return answer.json()["run_id"]


async def _told(client: httpx.AsyncClient, run_id: str):
    text = (await client.get(f"/api/runs/{run_id}/events")).text
    blocks = [block.split("\n") for block in text.split("\n\n") if block.startswith("id: ")]
    assert [int(lines[0][4:]) for lines in blocks] == list(range(1, len(blocks) + 1))
    return [(lines[1][7:], json.loads(lines[2][6:])) for lines in blocks]
