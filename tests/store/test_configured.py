"""Where the files of a database lie: two databases may share a data directory."""

import os
import time

import pytest

from maniple.capabilities.workspace import workspaces_of
from maniple.config import Settings
from maniple.config.service_settings import StoreSettings
from maniple.store.configured import (
    ARTIFACTS,
    TEMPORARY_PREFIX,
    open_configured_store,
    open_temporary_store,
    storage_folder,
)
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
