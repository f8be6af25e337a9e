"""`maniple db move`: a SQLite database is copied into PostgreSQL whole, or not at all."""

import asyncio
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from maniple.config import Settings
from maniple.errors import StoreBusy, StoreError
from maniple.langgraph_internals import checkpoint_config
from maniple.store import open_store
from maniple.store.artifact_files import ArtifactFiles
from maniple.store.configured import list_moved_folders, move_to_postgres, move_to_sqlite
from maniple.store.postgres.store import open_postgres
from maniple.store.shared_state import open_state_rows
from tests.cli.processes import MANIPLE, environment, maniple, start
from tests.postgres import Cluster
from tests.store.moving import (
    ignore,
    list_tables,
    make_full,
    read_file,
    read_postgres,
    require_same,
    require_same_files,
    unpack_data,
)

pytestmark = pytest.mark.anyio
SETTINGS = {"store.backend": "MANIPLE_STORE__BACKEND=postgres", "store.url": "MANIPLE_STORE__URL="}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The database of an earlier version."""
    return unpack_data(tmp_path)


@pytest.fixture
def url(cluster: Cluster) -> Iterator[str]:
    """A database without tables."""
    made = cluster.create()
    yield made
    cluster.drop(made)


async def test_each_row_of_each_table_is_copied_in_its_order(file: Path, url: str) -> None:
    await make_full(file)
    rows = await move_to_postgres(file, url, ignore)
    require_same(file, url)
    for table in list_tables(file):
        assert read_file(file, f"SELECT count(*) FROM {table}") == [(rows[table],)]


async def test_each_checkpoint_and_its_writes_read_as_before(file: Path, url: str) -> None:
    artifacts = ArtifactFiles(file.parent / "artifacts")
    await move_to_postgres(file, url, ignore)
    keys = "SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints"
    graphs = {(thread, namespace, None) for thread, namespace, _ in read_file(file, keys)}
    async with (
        open_store(file, file.parent / "artifacts", server=False) as old,
        open_postgres(url, artifacts, server=False) as new,
    ):
        for key in [*read_file(file, keys), *graphs]:  # each one, and the newest of each graph
            before, after = [await one.checkpointer.aget_tuple(checkpoint_config(*key)) for one in (old, new)]
            assert before == after is not None
    assert read_postgres(url, "SELECT count(*) FROM checkpoint_writes") == read_file(
        file, "SELECT count(*) FROM writes"
    )


async def test_the_fences_stand_afterwards(file: Path, url: str) -> None:
    await move_to_postgres(file, url, ignore)
    disabled = "SELECT tgname FROM pg_trigger WHERE tgenabled = 'D'"
    assert read_postgres(url, disabled) == []
    async with open_postgres(url, ArtifactFiles(file.parent / "artifacts"), server=False) as store:
        assert await store.check() == []


async def test_a_database_with_data_takes_none(file: Path, url: str) -> None:
    await move_to_postgres(file, url, ignore)
    before = read_postgres(url, "SELECT count(*) FROM events")
    with pytest.raises(StoreError, match="empty"):
        await move_to_postgres(file, url, ignore)
    assert read_postgres(url, "SELECT count(*) FROM events") == before


@pytest.mark.parametrize("server", [True, False])
async def test_a_file_that_another_program_has_open_is_not_moved(file: Path, url: str, server: bool) -> None:
    async with open_store(file, file.parent / "artifacts", server=server):
        with pytest.raises(StoreBusy):
            await move_to_postgres(file, url, ignore)


async def test_nobody_writes_to_the_file_while_it_is_moved(file: Path, url: str) -> None:
    refused = list[str]()

    def write(table: str, done: int, total: int) -> None:
        with closing(sqlite3.connect(file, timeout=0)) as connection:
            try:
                connection.execute("DELETE FROM threads")
            except sqlite3.OperationalError as error:
                refused.append(str(error))

    rows = await move_to_postgres(file, url, write)
    assert len(refused) >= len([one for one in rows.values() if one])


async def test_a_move_that_is_killed_leaves_nothing_and_the_next_one_moves_all(file: Path, url: str) -> None:
    env = environment(file.parent.parent, "")
    arguments = ("db", "move", "--to", url)
    process = await start(MANIPLE, *arguments, folder=file.parent.parent, env=env)
    assert process.stderr
    async with asyncio.timeout(60):
        while not (await process.stderr.readline()).startswith(b"events: "):
            assert process.returncode is None
    process.send_signal(signal.SIGKILL)
    await process.communicate()
    assert read_postgres(url, "SELECT count(*) FROM threads") == [(0,)]
    status, output, notes = await maniple(*arguments, folder=file.parent.parent, env=env)
    assert (status, "checkpoint_writes: " in notes) == (0, True), notes
    assert all(line in output for line in SETTINGS.values())
    assert read_postgres(url, "SELECT count(*) FROM runs") == read_file(file, "SELECT count(*) FROM runs")


async def test_a_move_without_a_target_or_a_source_says_what_to_set(tmp_path: Path) -> None:
    env = environment(tmp_path, "")
    status, _, notes = await maniple("db", "move", folder=tmp_path, env=env)
    assert (status, "--to" in notes) == (2, True)
    there = {**env, "MANIPLE_STORE__BACKEND": "postgres", "MANIPLE_STORE__URL": "postgresql://h/d"}
    status, _, notes = await maniple("db", "move", folder=tmp_path, env=there)
    assert (status, "store.backend" in notes) == (2, True)


def test_the_folders_that_have_another_place_after_a_move_are_named(tmp_path: Path) -> None:
    own, data = tmp_path / "own.db", tmp_path / "data"
    beside = Settings.model_validate({"data_dir": data, "store": {"path": own}})
    usual = Settings.model_validate({"data_dir": data})
    shared = Settings.model_validate(
        {"data_dir": data, "store": {"backend": "postgres", "url": "postgresql:"}}
    )
    for name in ("own.db.artifacts", "own.db.workspaces", "own.db.d", "data/artifacts", "data/mcp"):
        (tmp_path / name).mkdir(parents=True)
    moved = [(tmp_path / f"own.db.{name}", data / name) for name in ("artifacts", "workspaces")]
    assert list_moved_folders(beside, None) == moved
    assert list_moved_folders(usual, None) == []
    assert list_moved_folders(shared, own) == [(data / "artifacts", tmp_path / "own.db.artifacts")]
    assert list_moved_folders(shared, data / "maniple.db") == []


async def test_a_database_that_moved_there_and_back_is_the_same(file: Path, url: str) -> None:
    await make_full(file)
    await move_to_postgres(file, url, ignore)
    back = file.with_name("back.db")
    rows = await move_to_sqlite(url, back, ignore, lambda: None)
    assert list_tables(file) <= rows.keys()
    require_same_files(file, back)
    made = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
    assert {*read_file(back, made)} == {*read_file(file, made)}
    keys = "SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints ORDER BY rowid"
    async with (
        open_store(file, file.parent / "artifacts", server=False) as old,
        open_store(back, file.parent / "artifacts", server=False) as new,
    ):
        assert await new.check() == []
        for thread, namespace, one in read_file(file, keys):
            for key in ((thread, namespace, one), (thread, namespace, None)):
                found = [await at.checkpointer.aget_tuple(checkpoint_config(*key)) for at in (old, new)]
                assert found[0] == found[1] is not None


async def test_a_way_back_needs_a_new_file_and_a_database_that_nobody_has_open(file: Path, url: str) -> None:
    await move_to_postgres(file, url, ignore)
    with pytest.raises(StoreError, match="exists"):
        await move_to_sqlite(url, file, ignore, lambda: None)
    back = file.with_name("back.db")
    async with open_postgres(url, ArtifactFiles(file.parent / "artifacts"), server=False):
        with pytest.raises(StoreBusy):
            await move_to_sqlite(url, back, ignore, lambda: None)
    assert not back.exists()


async def test_a_way_back_that_is_killed_leaves_nothing_and_the_next_one_moves_all(
    file: Path, url: str
) -> None:
    await move_to_postgres(file, url, ignore)
    folder = file.parent.parent
    back = folder / "back.db"
    env = environment(folder, "")
    env |= {"MANIPLE_STORE__BACKEND": "postgres", "MANIPLE_STORE__URL": url}
    with open_state_rows(Settings.model_validate({"store": {"url": url}})) as shared:
        shared.accepted_tools.write("s", "accepted there")
    arguments = ("db", "move", "--to", str(back))
    process = await start(MANIPLE, *arguments, folder=folder, env=env)
    assert process.stderr
    async with asyncio.timeout(60):
        while not (await process.stderr.readline()).startswith(b"events: "):
            assert process.returncode is None
    process.send_signal(signal.SIGKILL)
    await process.communicate()
    assert not back.exists()
    status, output, notes = await maniple(*arguments, folder=folder, env=env)
    assert (status, "writes: " in notes) == (0, True), notes
    assert "MANIPLE_STORE__BACKEND=sqlite" in output
    assert [one.name for one in folder.glob("back.db*")] == ["back.db"]
    assert read_file(back, "SELECT count(*) FROM runs") == read_postgres(url, "SELECT count(*) FROM runs")
    assert [one.read_text() for one in folder.rglob("accepted/s.json")] == ["accepted there"]


async def test_a_way_back_that_was_killed_between_two_names_is_ended_by_the_next_one(
    file: Path, url: str
) -> None:
    await move_to_postgres(file, url, ignore)
    back = file.with_name("back.db")
    rows = await move_to_sqlite(url, back, ignore, lambda: None)
    os.link(back, file.with_name("back.db.moving"))
    assert await move_to_sqlite(url, back, ignore, lambda: None) == rows
    assert [one.name for one in file.parent.glob("back.db*")] == ["back.db"]
    async with open_store(back, file.parent / "artifacts", server=True) as store:
        assert await store.check() == []


async def test_a_way_back_gives_the_file_its_name_after_all_else_is_copied(file: Path, url: str) -> None:
    await move_to_postgres(file, url, ignore)
    back = file.with_name("back.db")

    def fail() -> None:
        assert not back.exists()
        raise StoreError("The logins cannot be read.")

    with pytest.raises(StoreError, match="logins"):
        await move_to_sqlite(url, back, ignore, fail)
    assert not back.exists()
