"""A server that is killed loses no run, and does nothing twice that it knows to be done."""

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.grammar import Client
from tests.openai_server import SIMPLE, call, reply, serving
from tests.runs.killing import Mortal, open_site, together
from tests.serving import environment
from tests.sizes import sizes
from tests.team import plan, step

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(400)]
CALLS, SEED = 7, 20261122


def script(site_url: str):
    crawls = [call("crawl_tool", url=f"{site_url}/{{run}}/{number}") for number in range(CALLS)]
    return {
        "by_history": True,
        "coordinator": SIMPLE["coordinator"],
        "planner": [{"chunks": [json.dumps(plan(step("researcher"), step("reporter")))]}],
        "researcher": [*crawls, reply("found by {run}")],
        "reporter": [reply("the report of {run}")],
    }


def recorded(database: Path) -> set[str]:
    """Return the addresses whose crawl has its result on record. Reads beside a dead server."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection, connection:
        rows = connection.execute("SELECT arguments FROM tool_calls WHERE result IS NOT NULL").fetchall()
    return {"/" + json.loads(arguments)["url"].split("/", 3)[3] for (arguments,) in rows}


@pytest.mark.parametrize(("runs", "kills"), sizes((8, 2), (100, 12)))
async def test_runs_survive_kills(tmp_path, runs, kills):
    dice = random.Random(SEED)
    moments = sorted(dice.sample(range(runs * CALLS // 20, runs * CALLS), kills))
    database = tmp_path / "data" / "maniple.db"
    visits: dict[str, int] = {}  # of what was on record when the server was killed
    async with open_site() as site:
        with serving(script(site.url)) as model:
            env = environment(model.base_url, tmp_path, MANIPLE_FETCH__ALLOW_PRIVATE="127.0.0.0/8")
            async with Mortal(env, tmp_path) as server:
                async with server.client() as client:
                    run_ids = await together(_begin(client, f"r{n}") for n in range(runs))
                for moment in moments:
                    await site.visited(moment)
                    await server.kill()
                    for path in recorded(database) - visits.keys():
                        visits[path] = site.hits[path]
                    await server.start()
                async with server.client() as client:
                    told = await together(_told(client, run_id) for run_id in run_ids)
    for number, frames in enumerate(told):
        read = Client().read(frames)
        assert read.status == "completed", (number, frames[-3:])
        assert f"the report of r{number}" in frames[-1][1]["messages"][-1]["content"]
    assert len(site.hits) == runs * CALLS
    repeated = {path: hits for path, hits in visits.items() if site.hits[path] > hits}
    assert repeated == {}, "recorded calls were run again"
    with closing(sqlite3.connect(database)) as connection, connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT DISTINCT status FROM runs").fetchall() == [("completed",)]
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (runs,)


async def _begin(client, name: str) -> str:
    body = {"messages": [{"role": "user", "content": f"Look at seven pages. #run={name}"}]}
    thread = (await client.post("/api/threads", json={})).json()["thread_id"]
    answer = await client.post(f"/api/threads/{thread}/runs", json=body)
    assert answer.status_code == 202, answer.text
    return answer.json()["run_id"]


async def _told(client, run_id: str):
    text = (await client.get(f"/api/runs/{run_id}/events")).text
    blocks = [block.split("\n") for block in text.split("\n\n") if block.startswith("id: ")]
    assert [int(lines[0][4:]) for lines in blocks] == list(range(1, len(blocks) + 1))
    return [(lines[1][7:], json.loads(lines[2][6:])) for lines in blocks]
