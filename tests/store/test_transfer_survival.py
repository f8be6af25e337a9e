"""A move that is killed at any moment has copied nothing or all, and the next one does the rest."""

import asyncio
import random
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from maniple.config import Settings
from maniple.store import open_store
from maniple.store.artifact_files import ArtifactFiles
from maniple.store.configured import move_to_postgres
from maniple.store.postgres.store import open_postgres
from maniple.store.shared_state import SharedState, open_shared_state, state_files
from tests.cli.processes import environment, maniple
from tests.forking import forking
from tests.postgres import Cluster
from tests.runs.workers import until
from tests.store.moving import (
    ignore,
    list_tables,
    make_full,
    read_postgres,
    require_empty,
    require_same,
    require_same_files,
    unpack_data,
)

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(300)]
KEY = Fernet.generate_key().decode()
KILLS = 6
LANGGRAPH_TABLES = 2
"""Of its tables, a move reports so many at least."""
DYING = "tests.store.dying_move"
ROOT = Path(__file__).parents[2]
SHARED = {"logins": "s", "accepted_tools": "s", "endpoints": "capabilities"}
OTHERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
    "AND backend_type = 'client backend'"
)


@dataclass(frozen=True)
class Move:
    """One direction of `maniple db move`, in processes of its own."""

    url: str
    file: Path
    arguments: tuple[str, ...]
    env: Mapping[str, str]

    @property
    def folder(self) -> Path:
        return self.file.parent.parent

    async def die(self, number: int) -> None:
        """Run the command up to its death at the report of this number.

        Returns when the database knows that its client has gone.
        """
        arguments = ("-m", DYING, str(number), *self.arguments)
        env = {**self.env, "PYTHONPATH": str(ROOT)}
        with forking():
            process = await asyncio.create_subprocess_exec(
                sys.executable, *arguments, cwd=self.folder, env=env, stdin=DEVNULL, stderr=PIPE
            )
        _, notes = await process.communicate()
        assert process.returncode == -signal.SIGKILL, notes.decode()

        async def is_alone() -> bool:
            return await asyncio.to_thread(read_postgres, self.url, OTHERS) == [(0,)]

        await until(is_alone)

    async def finish(self) -> tuple[int | None, str, str]:
        return await maniple(*self.arguments, folder=self.folder, env=self.env)

    def settings(self, backend: str) -> Settings:
        return Settings.model_validate(
            {
                "data_dir": self.folder / "data",
                "cache_dir": self.env["MANIPLE_CACHE_DIR"],
                "secret_key": KEY,
                "store": {"backend": backend, "url": self.url},
            }
        )


@asynccontextmanager
async def full_source(cluster: Cluster, folder: Path) -> AsyncIterator[tuple[str, Path]]:
    """A database with a row in each table, and an empty one in PostgreSQL."""
    file, url = unpack_data(folder), cluster.create()
    await make_full(file)
    try:
        yield url, file
    finally:
        cluster.drop(url)


def moments(file: Path) -> list[int]:
    """Return at which reports a move is killed: the first, the last, and some between. Each table has one."""
    count = len(list_tables(file)) + LANGGRAPH_TABLES
    return sorted({1, count, *random.Random(40).sample(range(2, count), KILLS - 2)})


def read_shared(state: SharedState) -> dict[str, str | None]:
    return {kind: getattr(state, kind).read(name) for kind, name in SHARED.items()}


def fill_shared(state: SharedState) -> dict[str, str | None]:
    """Give each kind of shared text one."""
    kinds = state.__slots__
    assert {*kinds} == {*SHARED}, "a new kind of shared text: a move has to take it along"
    for kind, name in SHARED.items():
        getattr(state, kind).write(name, f"{kind} of the source")
    return read_shared(state)


async def test_a_killed_move_has_copied_nothing_or_all(cluster: Cluster, tmp_path: Path) -> None:
    async with full_source(cluster, tmp_path) as (url, file):
        move = Move(url, file, ("db", "move", "--to", url), environment(tmp_path, ""))
        shared = fill_shared(state_files(move.settings("sqlite")))
        for number in moments(file):
            await move.die(number)
            require_empty(file, url)
        status, _, notes = await move.finish()
        assert status == 0, notes
        require_same(file, url)
        artifacts = ArtifactFiles(file.parent / "artifacts")
        async with open_postgres(url, artifacts, server=False) as store:
            assert await store.check() == []
        with open_shared_state(move.settings("postgres")) as state:
            assert read_shared(state) == shared


async def test_a_killed_way_back_leaves_no_file_or_the_whole_one(cluster: Cluster, tmp_path: Path) -> None:
    async with full_source(cluster, tmp_path) as (url, file):
        await move_to_postgres(file, url, ignore)
        back = tmp_path / "back.db"
        env = environment(tmp_path, "", MANIPLE_SECRET_KEY=KEY)
        env |= {"MANIPLE_STORE__BACKEND": "postgres", "MANIPLE_STORE__URL": url}
        move = Move(url, file, ("db", "move", "--to", str(back)), env)
        with open_shared_state(move.settings("postgres")) as state:
            shared = fill_shared(state)
        for number in moments(file):
            await move.die(number)
            assert not back.exists()
        status, output, notes = await move.finish()
        assert status == 0, output + notes
        assert not back.with_name("back.db.moving").exists()
        require_same_files(file, back)
        assert read_shared(state_files(move.settings("sqlite"))) == shared
        async with open_store(back, file.parent / "artifacts", server=True) as store:
            assert await store.check() == []
