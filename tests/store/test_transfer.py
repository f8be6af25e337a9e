"""`maniple db move`: a SQLite database is copied into PostgreSQL whole, or not at all."""

import asyncio
import signal
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from maniple.config import Settings
from maniple.errors import StoreBusy, StoreError
from maniple.langgraph_internals import checkpoint_config
from maniple.store import open_store
from maniple.store.artifact_files import ArtifactFiles
from maniple.store.configured import misplaced_folders, move_to_postgres, move_to_sqlite
from maniple.store.postgres.store import open_postgres
from maniple.store.shared_state import open_state_rows
from tests.cli.processes import MANIPLE, environment, maniple, start
from tests.postgres import Cluster
from tests.upgrade.make_data_folder import ARCHIVE

pytestmark = pytest.mark.anyio
DERIVED = {"run_texts", "run_words", "run_trigrams"}
"""What the search reads, which a server makes again."""
SETTINGS = {"store.backend": "MANIPLE_STORE__BACKEND=postgres", "store.url": "MANIPLE_STORE__URL="}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The database of an earlier version, whose runs wait, are queued, and were cut off."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "data" / "maniple.db"


@pytest.fixture
def url(cluster: Cluster) -> Iterator[str]:
    """A database without tables."""
    made = cluster.create()
    yield made
    cluster.drop(made)


def ignore(table: str, done: int, total: int) -> None:
    """Report nothing."""


def read_file(file: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchall()


def read_postgres(url: str, sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, options="-c search_path=maniple") as connection:
        return connection.execute(sql.encode()).fetchall()


def fill(file: Path) -> None:
    """Give each table of the newest schema that the folder has empty a row with unusual values."""
    now = "1764400000.5"
    with closing(sqlite3.connect(file)) as connection:
        ((run,),) = connection.execute("SELECT run_id FROM runs ORDER BY position LIMIT 1").fetchall()
        page = "'https://example.org/\u00e9\U0001f600', 'a\tb\\n\nc'"
        for statement in (
            f"INSERT INTO api_keys VALUES (1, 'k', 'n\\', 'd', {now}, NULL, '{{}}')",
            f"INSERT INTO spent VALUES ('', {now}, NULL, 1, 2, 3, 9007199254740993, 0.1, 1e-9)",
            f"INSERT INTO source_texts VALUES ('{run}', 's', 3, 'x' || char(0) || 'y')",
            f"INSERT INTO sources VALUES ('{run}', 1, {page}, 't', 'web', {now}, 's', 1, '', '', '')",
            f"INSERT INTO source_aliases VALUES (1, '{run}', 1, {page}, 0)",
            f"INSERT INTO readings VALUES (1, '{run}', 1, '{run}', 's')",
            f"INSERT INTO unread_pages VALUES (1, '{run}', {page}, 'r', {now})",
            f"INSERT INTO findings VALUES (1, '{run}', 1, 's', 'q', 's', 0, 3, {now}, 0)",
            f"INSERT INTO page_attempts VALUES (1, '{run}', 1, {page})",
            "INSERT INTO schedules VALUES (1, 's', '', 'n', 'c', 'UTC', 'skip', 1, NULL, '', 0.5, 0, 1)",
            f"INSERT INTO schedule_ticks VALUES ('s', {now}, '{run}', 'started', '')",
            f"INSERT INTO webhooks VALUES (1, 'w', '', 'u', ',completed,', 's', {now}, '')",
            "INSERT INTO webhook_deliveries (delivery_id, webhook_id, run_id, thread_id, status, at, "
            f"next_at) VALUES ('d', 'w', 'r', 't', 'completed', {now}, {now})",
            f"INSERT INTO batches VALUES (1, 'b', '', 'server', 'n', '{{}}', '{{}}', '{{}}', 1, 1, {now}, 1)",
            "INSERT INTO batch_items VALUES ('b', 1, 'i', 'waiting', 0, '', '', 0, 0, 0, 0, 0)",
        ):
            connection.execute(statement)
        connection.commit()


async def test_each_row_of_each_table_is_copied_in_its_order(file: Path, url: str) -> None:
    async with open_store(file, file.parent / "artifacts", server=False):
        pass  # brings it to the newest schema
    fill(file)
    rows = await move_to_postgres(file, url, ignore)
    tables = [
        name
        for (name,) in read_file(file, "SELECT name FROM pragma_table_list WHERE schema = 'main' AND strict")
    ]
    tables += ["schedules", "schedule_ticks", "webhooks", "webhook_deliveries", "batches", "batch_items"]
    for table in set(tables) - DERIVED:
        names = [name for (name,) in read_file(file, f"SELECT name FROM pragma_table_info('{table}')")]
        columns = ", ".join(name for name in names if name != "position")
        order = "position" if "position" in names else columns
        before = read_file(file, f"SELECT {columns} FROM {table} ORDER BY {order}")
        after = read_postgres(url, f"SELECT {columns} FROM {table} ORDER BY {order}")
        before = [
            tuple(one.replace("\0", "\ufffd") if isinstance(one, str) else one for one in row)
            for row in before
        ]
        assert sorted(after, key=repr) == sorted(before, key=repr) if order == columns else after == before, (
            table
        )
        assert len(after) == rows[table] > 0, table


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


def test_the_folders_of_a_file_elsewhere_are_named(tmp_path: Path) -> None:
    places = {"data_dir": tmp_path / "data", "store": {"path": tmp_path / "own.db"}}
    for name in ("own.db.artifacts", "own.db.workspaces", "own.db.d", "data"):
        (tmp_path / name).mkdir()
    moved = [(tmp_path / f"own.db.{name}", tmp_path / "data" / name) for name in ("artifacts", "workspaces")]
    assert misplaced_folders(Settings.model_validate(places)) == moved
    assert misplaced_folders(Settings.model_validate({"data_dir": tmp_path / "data"})) == []


async def test_a_database_that_moved_there_and_back_is_the_same(file: Path, url: str) -> None:
    async with open_store(file, file.parent / "artifacts", server=False):
        pass
    fill(file)
    await move_to_postgres(file, url, ignore)
    back = file.with_name("back.db")
    rows = await move_to_sqlite(url, back, ignore)
    query = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
    tables = {
        name for (name,) in read_file(file, query) if not name.startswith(("sqlite_", "run_t", "run_w"))
    }
    assert tables - {"checkpoints"} == rows.keys() - {"checkpoints"}
    for table in sorted(tables - {"checkpoints"}):
        names = [name for (name,) in read_file(file, f"SELECT name FROM pragma_table_info('{table}')")]
        order = "position" if "position" in names else ", ".join(names)
        columns = ", ".join(name for name in names if name != "position")
        sql = f"SELECT {columns} FROM {table} ORDER BY {order}"
        before = [
            tuple(one.replace("\0", "\ufffd") if isinstance(one, str) else one for one in row)
            for row in read_file(file, sql)
        ]
        assert read_file(back, sql) == before, table
    keys = "SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints ORDER BY rowid"
    assert read_file(back, keys) == read_file(file, keys) != []
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
        await move_to_sqlite(url, file, ignore)
    back = file.with_name("back.db")
    async with open_postgres(url, ArtifactFiles(file.parent / "artifacts"), server=False):
        with pytest.raises(StoreBusy):
            await move_to_sqlite(url, back, ignore)
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
