"""Files of older, newer and unfinished schemas."""

import sqlite3
from contextlib import closing

import pytest

from maniple.errors import StoreError
from maniple.store import RunUsage, open_store
from maniple.store.sqlite.database import connect
from maniple.store.sqlite.store import load_migrations, migrate
from tests.store.samples import stored_run

pytestmark = pytest.mark.anyio

SECOND = "ALTER TABLE threads ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey';"


@pytest.fixture
async def path(tmp_path):
    """A file of today's schema with a thread in it."""
    file = tmp_path / "maniple.db"
    async with open_store(file, tmp_path / "artifacts", server=True) as store:
        await stored_run(store)
    return file


def read(path, sql):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchone()


async def test_an_older_file_is_copied_and_brought_up_to_date(path):
    versions = load_migrations()
    with closing(connect(path)) as connection:
        migrate(connection, path, [*versions, SECOND])
        migrate(connection, path, [*versions, SECOND])
    assert read(path, "SELECT colour FROM threads") == ("grey",)
    assert read(path, "PRAGMA user_version") == (len(versions) + 1,)
    (copy,) = path.parent.glob("*.backup")
    assert copy.stat().st_mode & 0o077 == 0
    assert copy.name == f"maniple.db.schema-{len(versions)}.backup"
    assert read(copy, "PRAGMA user_version") == (len(versions),)
    assert read(copy, "SELECT count(*) FROM threads") == (1,)


async def test_a_file_of_the_first_version_is_brought_up_to_date_and_counts_what_is_deleted(tmp_path):
    file = tmp_path / "maniple.db"
    with closing(connect(file)) as connection:
        migrate(connection, file, load_migrations()[:1])
    async with open_store(file, tmp_path / "artifacts", server=True) as store:
        run = await stored_run(store, usage=RunUsage(7))
        await store.threads.delete(run.thread_id)
        assert await store.runs.sum_usage("", run.created_at - 1, run.created_at) == RunUsage(7)
        assert await store.check() == []
    assert [copy.name for copy in tmp_path.glob("*.backup")] == ["maniple.db.schema-1.backup"]


async def test_events_of_an_older_file_are_read_without_times(tmp_path):
    file = tmp_path / "maniple.db"
    with closing(connect(file)) as connection:
        migrate(connection, file, load_migrations()[:4])
    async with open_store(file, tmp_path / "artifacts", server=True) as store:
        run = await stored_run(store)
    with closing(connect(file)) as connection:
        body = 'run {"run_id": "r"}\nmessage {"delta": "2 words"}'
        connection.execute("INSERT INTO events VALUES (?, 1, 2, ?)", (run.run_id, body))
    async with open_store(file, tmp_path / "artifacts", server=True) as store:
        told = await store.events.read(run.run_id)
    assert [(one.type, one.data, one.at) for one in told] == [
        ("run", '{"run_id": "r"}', None),
        ("message", '{"delta": "2 words"}', None),
    ]


async def test_a_step_that_fails_leaves_the_file_as_it_was(path):
    versions = load_migrations()
    with closing(connect(path)) as connection:
        for _ in range(2):
            with pytest.raises(sqlite3.Error):
                migrate(connection, path, [*versions, SECOND + "CREATE TABLE threads (again TEXT);"])
    assert read(path, "PRAGMA user_version") == (len(versions),)
    assert read(path, "SELECT count(*) FROM pragma_table_info('threads') WHERE name = 'colour'") == (0,)
    assert len([*path.parent.glob("*.backup")]) == 2
    async with open_store(path, path.parent / "artifacts", server=True) as store:
        assert await store.check() == []


async def test_a_file_of_a_newer_maniple_is_refused(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="newer maniple"):
        async with open_store(path, path.parent / "artifacts", server=True):
            pass
    assert read(path, "PRAGMA user_version") == (99,)


async def test_a_new_file_is_not_copied(path):
    assert not list(path.parent.glob("*.backup"))
