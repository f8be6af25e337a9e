"""Where the files of a database lie: two databases may share a data directory."""

import asyncio
import os
import sqlite3
import time
from contextlib import closing

import pytest

from maniple.capabilities.workspace import workspaces_of
from maniple.config import Settings
from maniple.config.service_settings import StoreSettings
from maniple.errors import StoreBusy, StoreInUse
from maniple.store import configured
from maniple.store.configured import (
    ARTIFACTS,
    DATABASE,
    TEMPORARY_PREFIX,
    open_configured_store,
    open_configured_store_patiently,
    open_temporary_store,
    storage_folder,
)
from maniple.store.sqlite import database
from tests.store.samples import content_path, stored_run

pytestmark = pytest.mark.anyio


def settings_of(data, path=None, **store):
    return Settings(data_dir=data, store=StoreSettings(path=path, **store))


async def stored_content(store, content):
    artifact = await store.artifacts.add(await stored_run(store), "a", "text/plain", content)
    path = content_path(store, artifact)
    os.utime(path, (1, 1))
    return artifact, path


async def test_a_vacuum_deletes_nothing_of_another_database_of_the_same_data_directory(tmp_path):
    usual, other = settings_of(tmp_path), settings_of(tmp_path, tmp_path / "b.db")
    async with open_configured_store(other, server=True) as store:
        new, path = await stored_content(store, b"new")
        assert path.parent == tmp_path / "b.db.artifacts"
    async with open_configured_store(usual, server=True) as store:
        _, path = await stored_content(store, b"usual")
        assert path.parent == tmp_path / ARTIFACTS
        await store.vacuum()
    async with open_configured_store(other, server=True) as store:
        await store.vacuum()
        assert await store.check() == []
        assert await (await store.artifacts.open(new)).read() == b"new"
    async with open_configured_store(usual, server=True) as store:
        assert await store.check() == []


async def test_backend_memory_writes_to_a_temporary_folder_and_deletes_it(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    data = tmp_path / "data"
    async with open_configured_store(settings_of(data, backend="memory"), server=True) as store:
        _, path = await stored_content(store, b"a")
        (home,) = tmp_path.glob(f"{TEMPORARY_PREFIX}*")
        assert path.is_relative_to(home)
        assert home.stat().st_mode & 0o777 == 0o700
        async with open_configured_store(settings_of(data, backend="memory"), server=True) as other:
            assert not await other.threads.list(None)
    assert [*tmp_path.iterdir()] == []


async def test_a_temporary_store_of_a_killed_process_is_deleted_by_the_next_one(tmp_path):
    hour_ago = time.time() - 3600
    left = tmp_path / f"{TEMPORARY_PREFIX}left"
    left.mkdir()
    (left / "store.db").write_text("rows")
    async with open_temporary_store(tmp_path) as running:
        (living,) = set(tmp_path.iterdir()) - {left}
        for home in (left, living):
            os.utime(home, (hour_ago, hour_ago))
        async with open_temporary_store(tmp_path):
            assert not left.exists()
            assert living.exists()
        await stored_run(running)


def test_the_usual_database_is_known_by_any_name(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    named = settings_of(tmp_path / "real", tmp_path / "link" / "maniple.db")
    assert storage_folder(named, ARTIFACTS) == storage_folder(settings_of(tmp_path / "real"), ARTIFACTS)


def test_threads_of_two_databases_have_no_workspace_in_common(tmp_path):
    usual = workspaces_of(settings_of(tmp_path))
    other = workspaces_of(settings_of(tmp_path, tmp_path / "b.db"))
    usual.open("chosen").write("secret", b"s")
    assert other.open("chosen").path == tmp_path / "b.db.workspaces" / "chosen"
    other.remove("chosen")
    assert usual.files("chosen", 9).found == (("secret", 1),)
    given_out = "00000000-0000-4000-8000-000000000000"
    usual.open(given_out).write("other", b"e")
    assert other.files(given_out, 9).found == ()


@pytest.fixture
async def locked(tmp_path, monkeypatch):
    """The connection that has the database of `settings_of(tmp_path)` locked."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(configured, "STARTING_PAUSE_SECONDS", 0.02)
    async with open_configured_store(settings_of(tmp_path), server=True):
        pass
    with closing(sqlite3.connect(tmp_path / DATABASE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


async def test_a_server_that_finds_its_file_locked_waits_and_says_so_once(tmp_path, locked, caplog):
    async def unlock():
        async with asyncio.timeout(30):
            while "Waiting for the store" not in caplog.text:  # noqa: ASYNC110 - a log has no event
                await asyncio.sleep(0.01)
        locked.execute("ROLLBACK")

    unlocking = asyncio.create_task(unlock())
    async with open_configured_store_patiently(settings_of(tmp_path), server=True) as store:
        assert unlocking.done()
        assert await store.threads.list(None) == []
    await unlocking
    assert caplog.text.count("Waiting for the store") == 1


async def test_a_server_waits_for_a_locked_file_no_longer_than_the_limit(tmp_path, locked, monkeypatch):
    monkeypatch.setattr(configured, "STARTING_SECONDS", 0.1)
    with pytest.raises(StoreBusy):
        async with open_configured_store_patiently(settings_of(tmp_path), server=True):
            raise AssertionError("the file is locked")


async def test_a_server_does_not_wait_for_another_server(tmp_path, caplog):
    async with open_configured_store(settings_of(tmp_path), server=True):
        with pytest.raises(StoreInUse):
            async with open_configured_store_patiently(settings_of(tmp_path), server=True):
                raise AssertionError("another server has the file")
    assert "Waiting" not in caplog.text
