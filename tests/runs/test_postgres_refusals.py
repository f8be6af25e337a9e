"""A PostgreSQL that answers and takes no writes: runs wait, say so, and go on where they were."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from tests.runs.followed_runs import followed_runs
from tests.runs.workers import until

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
    async with followed_runs(url, tmp_path, runs=RUNS, workers=WORKERS) as it:

        async def is_told() -> bool:
            stored = (await it.client.get("/readyz")).json()["store"]
            return not code or (await it.all_say_that_they_wait() and stored.get("code") == code)

        async with refusing:
            await until(is_told)
            await asyncio.sleep(SETTLES_SECONDS)  # what is under way ends
            visits = it.site.hits.total()
            await asyncio.sleep(REFUSES_SECONDS)  # the outage itself
            assert it.site.hits.total() == visits, "runs went on without a store"
            assert not [one for one in it.following if one.done()]
        await it.require_completed()


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
