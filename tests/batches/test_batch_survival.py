"""Processes that are killed at random do each item of a batch once, and report the end of each run."""

import asyncio
import json
import signal

import pytest

from tests.batches.surviving import SCRIPT, SETTINGS, on_postgres, on_sqlite, survive
from tests.cli.processes import MANIPLE, environment, maniple, start
from tests.openai_server import serving
from tests.runs.workers import until

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(500)]
ITEMS, KILLS = 400, 8
PARALLEL = 16
SECONDS = 450


async def test_each_item_is_one_run_under_kills_on_sqlite(tmp_path):
    async with on_sqlite(tmp_path) as victims:
        done = await survive(victims, ITEMS, KILLS, PARALLEL, SECONDS)
    done.require_each_once()
    print(f"{done.count} items, {done.kills} kills: {done.seconds:.0f} s")


async def test_each_item_is_one_run_under_kills_on_postgres(postgres_url, tmp_path):
    async with on_postgres(postgres_url, tmp_path) as victims:
        done = await survive(victims, ITEMS, KILLS, PARALLEL, SECONDS)
    done.require_each_once()
    print(f"{done.count} items, {done.kills} kills: {done.seconds:.0f} s")


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
async def test_a_batch_of_the_terminal_that_was_killed_goes_on_at_once(backend, postgres_url, tmp_path):
    tasks = [f"{number}+3=?" for number in range(12)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)), encoding="utf-8")
    with serving(SCRIPT) as model:
        env = environment(tmp_path, model.base_url, MANIPLE_STORE__BACKEND=backend, **SETTINGS)
        env |= {"MANIPLE_STORE__URL": postgres_url} if backend == "postgres" else {}
        killed = await start(MANIPLE, "batch", "tasks.jsonl", folder=tmp_path, env=env)
        assert killed.stderr
        async with asyncio.timeout(60):
            while b"--resume" not in (line := await killed.stderr.readline()):
                assert line, "the batch has ended"
        before = len(model.requests)

        async def works() -> bool:
            return len(model.requests) > before + 6

        await until(works)
        killed.send_signal(signal.SIGKILL)
        await killed.communicate()
        name = line.decode().split()[-1]
        status, output, notes = await maniple("batch", "--resume", name, folder=tmp_path, env=env)
    assert status == 0, notes
    results = [json.loads(one) for one in output.splitlines()]
    assert [(one["input"], one["state"], one["attempt"]) for one in results] == [
        (task, "accepted", 1) for task in tasks
    ]
