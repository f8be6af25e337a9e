"""A PostgreSQL that answers and takes no writes: runs wait, say so, and go on where they were."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import psycopg
import pytest

from tests.openai_server import serving
from tests.runs.killing import open_site, together
from tests.runs.test_postgres_outages import Stream
from tests.runs.workers import CALLS, REFUSED, begin, cluster_of, connected, script, until

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(300)]
RUNS, WORKERS = 6, 2
REFUSES_SECONDS = 8.0
"""Longer than a lease: afterwards no living process may count as dead."""
SETTLES_SECONDS = 4.0
DISK = "120m"
_FILL_BYTES = 1 << 20


@asynccontextmanager
async def read_only(cluster) -> AsyncIterator[None]:
    """Make each transaction of the server read-only."""

    def set_it(value: str) -> None:
        with psycopg.connect(cluster.url("postgres"), autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute(f"ALTER SYSTEM {value}".encode())
            connection.execute("SELECT pg_reload_conf()")

    await asyncio.to_thread(set_it, "SET default_transaction_read_only = on")
    try:
        yield
    finally:
        await asyncio.to_thread(set_it, "RESET default_transaction_read_only")


@contextmanager
def small_disk():
    """Mount a file system of `DISK` bytes; skips the test where that is not allowed."""
    with TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        mounted = Path(folder, "disk")
        mounted.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(mounted)]
        if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
            pytest.skip("a small file system cannot be mounted here: run the tests as root")
        try:
            yield mounted
        finally:
            subprocess.run(["umount", "-l", str(mounted)], check=True)


@asynccontextmanager
async def full(disk: Path) -> AsyncIterator[None]:
    """Fill a file system."""
    filler = disk / "filler"

    def fill() -> None:
        with filler.open("wb", buffering=0) as file:
            try:
                while file.write(b"\0" * _FILL_BYTES):
                    pass
            except OSError:
                pass  # it is full

    await asyncio.to_thread(fill)
    try:
        yield
    finally:
        filler.unlink()


async def wait_and_go_on(url: str, tmp_path: Path, refusing, code: str) -> None:
    """Let runs meet a server that is `refusing`; `code` is what the node then says, "" if it cannot know.

    On a full disk small rows, such as a beat, may still find room.
    """
    async with open_site() as site:
        with serving(script(site.url, delay_seconds=0.1)) as model:
            options = {"count": WORKERS, "MANIPLE_SERVER__PING_SECONDS": "0.3"}
            async with cluster_of(url, model.base_url, tmp_path, **options) as (api, working):
                async with httpx.AsyncClient(base_url=api, trust_env=False, timeout=200) as client:
                    run_ids = await together(begin(client, f"r{number}") for number in range(RUNS))
                    streams = [Stream() for _ in run_ids]
                    following = [
                        asyncio.create_task(one.read(client, run_id))
                        for one, run_id in zip(streams, run_ids, strict=True)
                    ]
                    await site.visited(2 * RUNS)
                    async with refusing:

                        async def is_told() -> bool:
                            stored = (await client.get("/readyz")).json()["store"]
                            said = all(one.says_that_it_waits for one in streams)
                            return not code or (said and stored.get("code") == code)

                        await until(is_told)
                        await asyncio.sleep(SETTLES_SECONDS)  # what is under way ends
                        visits = site.hits.total()
                        await asyncio.sleep(REFUSES_SECONDS)  # the outage itself
                        done = [one for one in following if one.done()]
                        assert site.hits.total() == visits, "runs went on without a store"
                        assert not done
                    statuses = {await one for one in following}
                    records = [(await client.get(f"/api/runs/{one}")).json() for one in run_ids]
                assert [one.process.returncode for one in working.running] == [None] * WORKERS
    async with connected(url) as fetch:
        (refused,) = await fetch(REFUSED)
    assert statuses == {"completed"}
    assert {(one["status"], one["waiting_for"]) for one in records} == {("completed", None)}
    assert (len(site.hits), site.hits.total()) == (RUNS * CALLS, RUNS * CALLS), "a call was made again"
    assert refused == (0, 0), "a run was taken over, or a write was refused"


async def test_runs_wait_for_a_server_that_is_read_only(cluster, postgres_url, tmp_path):
    await wait_and_go_on(postgres_url, tmp_path, read_only(cluster), "store_read_only")


async def test_runs_wait_for_a_server_whose_disk_is_full(cluster, template, tmp_path):
    with small_disk() as disk:
        (disk / "space").mkdir()
        shutil.chown(disk / "space", "postgres")
        url = cluster.create(template)
        name = url.partition("?")[0].rpartition("/")[2]
        with psycopg.connect(cluster.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE TABLESPACE small LOCATION '{disk / 'space'}'".encode())
            connection.execute(f"ALTER DATABASE {name} SET TABLESPACE small".encode())
        try:
            await wait_and_go_on(url, tmp_path, full(disk), "")
        finally:
            cluster.drop(url)
            with psycopg.connect(cluster.url("postgres"), autocommit=True) as connection:
                connection.execute("DROP TABLESPACE small")
