"""Processes on one PostgreSQL database that are killed, or sleep for longer than their lease."""

import asyncio
import json
import os
import signal

import pytest

from tests.store.samples import child, some_events

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def named(postgres_url, tmp_path):
    """A file that holds the URL of a database."""
    file = tmp_path / "url"
    file.write_text(postgres_url)
    return file


async def told(process):
    return json.loads(await asyncio.to_thread(process.stdout.readline))


async def asked(process):
    """Have the process append one event; return what it says of it."""
    print(file=process.stdin, flush=True)
    return await told(process)


async def test_the_runs_of_a_killed_server_go_to_exactly_one_other(named, open_postgres_again):
    with child("drive", named) as server:
        told_first = await told(server)
        assert await asked(server) == {"number": 1}
        os.kill(server.pid, signal.SIGKILL)
        server.wait(20)
    async with open_postgres_again(server=True) as store, open_postgres_again(server=False) as other:
        (run,) = await store.runs.list_orphaned("server")
        assert (run.run_id, run.process) == (told_first["run_id"], told_first["process"])
        claims = await asyncio.gather(store.runs.claim(run), other.runs.claim(run))
        assert sorted(claim is not None for claim in claims) == [False, True]


async def test_a_server_that_slept_through_its_lease_writes_nothing_when_it_wakes(named, open_postgres_again):
    with child("drive", named) as sleeper:
        run_id = (await told(sleeper))["run_id"]
        assert await asked(sleeper) == {"number": 1}
        sleeper.send_signal(signal.SIGSTOP)
        async with open_postgres_again(server=True) as store:  # waits until the lease is over
            (run,) = await store.runs.list_orphaned("server")
            assert await store.runs.claim(run) is not None
            await store.events.append([(run_id, some_events(2, 2))])
            sleeper.send_signal(signal.SIGCONT)
            assert await asked(sleeper) == {"code": "run_taken_over"}
            assert await asked(sleeper) == {"code": "run_taken_over"}
            assert await store.events.read(run_id) == some_events(1, 2)
            await store.runs.change(run_id, status="completed")
            assert await asked(sleeper) == {"code": "run_taken_over"}, "also when the run has ended"


async def test_a_server_that_lives_keeps_its_run(named, open_postgres_again):
    with child("drive", named) as server:
        run_id = (await told(server))["run_id"]
        async with open_postgres_again(server=False) as store:
            assert await store.runs.list_orphaned("server") == []
            run = await store.runs.get(run_id)
            assert await store.runs.claim(run) is None
            assert await asked(server) == {"number": 1}
