"""A server that is killed does each item of a batch once, and reports the end of each run."""

import asyncio
import json
import sqlite3
from contextlib import closing

import pytest

from tests.openai_server import BRIEF, serving
from tests.runs.killing import Mortal
from tests.serving import environment
from tests.sizes import sizes

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(400)]
LOOKS = 4_000


@pytest.mark.slow
@pytest.mark.parametrize(("count", "kills"), sizes((12, 2), (60, 8)))
async def test_each_item_is_one_run_under_kills(tmp_path, count, kills):
    with serving({**BRIEF, "by_history": True}) as model:
        env = environment(
            model.base_url,
            tmp_path,
            MANIPLE_SANDBOX__BACKEND="off",
            MANIPLE_BROWSER__ENABLED="false",
            MANIPLE_FETCH__ALLOW_PRIVATE="127.0.0.0/8",
        )
        async with Mortal(env, tmp_path) as server:
            async with server.client() as client:
                hook = {"url": "http://127.0.0.1:8080/nobody", "statuses": ["completed"]}
                assert (await client.post("/api/webhooks", json=hook)).status_code == 201
                body = {"items": [f"{n}+3=?" for n in range(count)], "parallel": 3}
                made = await client.post("/api/batches", json=body)
                path = made.headers["location"]
            for number in range(kills):
                async with server.client() as client:
                    await _reach(client, path, (number + 1) * count // (kills + 2))
                await server.kill()
                await server.start()
            async with server.client() as client:
                await _reach(client, path, count)
                lines = (await client.get(f"{path}/results")).text.splitlines()
    results = [json.loads(line) for line in lines]
    assert [one["number"] for one in results] == list(range(1, count + 1))
    with closing(sqlite3.connect(tmp_path / "data" / "maniple.db")) as connection:
        runs = connection.execute("SELECT run_id, status FROM runs").fetchall()
        reported = connection.execute("SELECT run_id FROM webhook_deliveries").fetchall()
    assert sorted(runs) == sorted((one["run_id"], "completed") for one in results)
    assert sorted(run_id for (run_id,) in reported) == sorted(run_id for run_id, _ in runs)


async def _reach(client, path, count):
    """Wait until so many items are accepted."""
    for _ in range(LOOKS):
        batch = (await client.get(path)).json()
        if batch["counts"].get("accepted", 0) >= count:
            return
        await asyncio.sleep(0.02)  # the interval of the looks; the end is the state
    raise AssertionError(batch)
