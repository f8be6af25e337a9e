"""A killed server asks only about code that ran: what waited for a place in the sandbox is simply run."""

import asyncio
import json
import random
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.openai_server import SIMPLE, call, reply, serving
from tests.runs.killing import Mortal, together
from tests.serving import environment
from tests.sizes import sizes
from tests.team import plan, step

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]
CALLS, SEED, MOST_ASKED = 3, 20261128, 2


def script():
    calls = [call("bash_tool", cmd=f"echo {{run}}-{n} >> lines.txt") for n in range(CALLS)]
    return {
        "by_history": True,
        "coordinator": SIMPLE["coordinator"],
        "planner": [{"chunks": [json.dumps(plan(step("coder"), step("reporter")))]}],
        "coder": [*calls, reply("done by {run}")],
        "reporter": [reply("the report of {run}")],
    }


@pytest.mark.slow
@pytest.mark.parametrize("runs", sizes(16, 60))
async def test_runs_whose_code_had_not_begun_do_not_wait_for_a_person(tmp_path, runs):
    cut_off, ends, lines = await _kill_once(tmp_path, runs, MANIPLE_SANDBOX__CONCURRENT="1")
    assert cut_off > MOST_ASKED, "the kill came when nothing waited"
    assert set(ends) <= {"completed", "interrupted"}
    assert ends["interrupted"] <= MOST_ASKED
    assert max(lines.values()) == 1, "nothing ran twice"
    assert len(lines) >= CALLS * ends["completed"]


@pytest.mark.slow
async def test_no_run_waits_for_a_person_where_code_may_run_again(tmp_path):
    _, ends, lines = await _kill_once(tmp_path, 60, MANIPLE_RUNS__ON_UNKNOWN__BASH_TOOL="rerun")
    assert ends == {"completed": 60}
    assert len(lines) == 60 * CALLS


async def _kill_once(folder: Path, runs: int, **settings: str) -> tuple[int, Counter[str], Counter[str]]:
    """Kill a server in the middle of its runs and start it again.

    Return the number of calls that were cut off, how many runs have each status, and the lines written.
    """
    data = folder / "data"
    moment = random.Random(SEED).randrange(runs // 4, runs * CALLS // 2)
    with serving(script()) as model:
        async with Mortal(environment(model.base_url, folder, **settings), folder) as server:
            async with server.client() as client:
                run_ids = await together(_begin(client, f"r{n}") for n in range(runs))
                await _until_written(data, moment)
            await server.kill()
            cut_off = _count_cut_off(data / "maniple.db")
            await server.start()
            async with server.client() as client:
                for run_id in run_ids:
                    await client.get(f"/api/runs/{run_id}/events")
                found = [(await client.get(f"/api/runs/{run_id}")).json()["status"] for run_id in run_ids]
    ends, lines = Counter(found), _lines(data)
    print(f"{runs} runs, killed at line {moment}: {cut_off} calls cut off, {ends['interrupted']} wait")
    return cut_off, ends, lines


def _lines(data: Path) -> Counter[str]:
    return Counter(line for file in data.rglob("lines.txt") for line in file.read_text("utf-8").split())


async def _until_written(data: Path, lines: int) -> None:
    for _ in range(6_000):
        if (await asyncio.to_thread(_lines, data)).total() >= lines:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("the runs do not work")


def _count_cut_off(database: Path) -> int:
    """Return the number of recorded calls without a result. Reads beside a dead server."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM tool_calls WHERE result IS NULL").fetchone()
    return count


async def _begin(client: httpx.AsyncClient, name: str) -> str:
    thread = (await client.post("/api/threads", json={})).json()["thread_id"]
    response = await client.post(f"/api/threads/{thread}/runs", json={"input": f"Write lines. #run={name}"})
    assert response.status_code == 202, response.text
    return response.json()["run_id"]
