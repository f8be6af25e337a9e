"""Several processes on one file, and processes that die."""

import json
import os
import random
import signal
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from maniple.errors import StoreBusy
from maniple.store import open_store
from tests.store.samples import a_run, a_thread, child, some_events

pytestmark = pytest.mark.anyio


def opened(path, *, server=True):
    return open_store(path, path.parent / "artifacts", server=server)


async def test_a_second_server_is_refused_with_the_pid_of_the_first(tmp_path):
    path = tmp_path / "maniple.db"
    with child("serve", path) as first:
        assert first.stdout.readline()
        with pytest.raises(StoreBusy, match=rf"pid {first.pid}\b"):
            async with opened(path):
                raise AssertionError("two servers on one file")


@pytest.mark.parametrize("link", [os.link, os.symlink])
@pytest.mark.parametrize("server", [True, False])
async def test_a_second_name_of_the_file_is_the_same_database(tmp_path, link, server):
    path, other = tmp_path / "maniple.db", tmp_path / "other" / "name.db"
    other.parent.mkdir()
    with child("serve", path) as first:
        told = json.loads(first.stdout.readline())
        link(path, other)
        if link is os.link or server:
            with pytest.raises(StoreBusy):
                async with opened(other, server=server):
                    raise AssertionError("two logs of one file")
        else:
            async with opened(other, server=False) as store:
                assert (await store.runs.get(told["run_id"])).process == told["process"]
                assert not (other.parent / "name.db-wal").exists()
    other.unlink()
    async with opened(path):
        pass


async def test_a_terminal_works_beside_a_server_and_leaves_its_runs_alone(tmp_path):
    path = tmp_path / "maniple.db"
    with child("serve", path) as server:
        told = json.loads(server.stdout.readline())
        async with opened(path, server=False) as store:
            assert await store.runs.list_orphaned("server") == []
            run = await store.runs.get(told["run_id"])
            assert run.process == told["process"]
            await store.threads.touch(run.thread_id, "Renamed beside it")


async def test_a_run_begins_when_no_other_living_process_works_on_its_thread(reopen):
    async with reopen(server=True) as store:
        async with reopen(server=False) as other:
            thread = await store.threads.create(a_thread())
            first, second, third = [
                await where.runs.add(replace(a_run(thread), process=where.process))
                for where in (store, other, store)
            ]
            assert await store.runs.list_in_other_processes(thread.thread_id) == [second]
            assert (await store.runs.start(first.run_id)).status == "running"
            assert await other.runs.start(second.run_id) is None
            await store.runs.change(first.run_id, status="completed")
            assert (await other.runs.start(second.run_id)).status == "running"
            assert await store.runs.start(third.run_id) is None
            assert await store.runs.start(second.run_id) is None, "it is not this process's"
        assert (await store.runs.start(third.run_id)).status == "running", "the other process has gone"


async def test_the_runs_of_a_killed_server_go_to_exactly_one_other(tmp_path):
    path = tmp_path / "maniple.db"
    with child("serve", path) as server:
        assert server.stdout.readline()
        os.kill(server.pid, signal.SIGKILL)
        server.wait(20)
    async with opened(path) as store, opened(path, server=False) as other:
        (run,) = await store.runs.list_orphaned("server")
        assert await other.runs.list_orphaned("server") == [run]
        claims = [await store.runs.claim(run), await other.runs.claim(run)]
        assert [claim is not None for claim in claims] == [True, False]
        assert claims[0].process == store.process
        assert claims[0].recoveries == 1
        assert await other.runs.list_orphaned("server") == []


async def test_a_server_that_ended_makes_room_and_leaves_no_lock_behind(tmp_path):
    path = tmp_path / "maniple.db"
    for _ in range(2):
        async with opened(path) as store:
            assert (tmp_path / "maniple.db.d" / f"{store.process}.lock").exists()
    assert [file.name for file in (tmp_path / "maniple.db.d").iterdir()] == ["opening"]


@pytest.mark.slow
async def test_twenty_writers_killed_in_mid_append_lose_nothing_they_acknowledged(tmp_path):
    path = tmp_path / "maniple.db"
    chance = random.Random(3)
    acknowledged: dict[str, int] = {}
    with child("writers", path) as writers:
        for _ in range(20):
            print(file=writers.stdin, flush=True)
            begun = json.loads(writers.stdout.readline())
            told = [json.loads(writers.stdout.readline()) for _ in range(chance.randrange(1, 80))]
            os.kill(begun["pid"], signal.SIGKILL)
            while "ended" not in told[-1]:
                told.append(json.loads(writers.stdout.readline()))
            acknowledged[begun["run_id"]] = told[-2]["number"]
    async with opened(path) as store:
        assert await store.check() == []
        for run_id, number in acknowledged.items():
            events = await store.events.read(run_id, 0, 1_000_000)
            assert len(events) >= number
            assert events == some_events(1, len(events))
        assert {run.run_id for run in await store.runs.list_orphaned("server")} == set(acknowledged)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
