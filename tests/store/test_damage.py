"""Damaged files are reported and not changed."""

import os
import shutil
import signal
import sqlite3
from contextlib import closing

import pytest

from maniple.errors import StoreCorrupt, StoreError
from maniple.store import open_store
from tests.store.samples import child, some_events, stored_run

pytestmark = pytest.mark.anyio


def opened(path):
    return open_store(path, path.parent / "artifacts", server=True)


async def filled(path):
    async with opened(path) as store:
        run = await stored_run(store)
        for first in range(1, 2001, 100):
            await store.events.append([(run.run_id, some_events(first, first + 99))])
    return run


def killed_in_the_middle(path):
    """Leave a file whose log holds what a writer wrote before it was killed."""
    with child("write", path) as writer:
        for _ in range(40):
            assert writer.stdout.readline()
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait(20)
    return path.with_name(path.name + "-wal")


def overwrite(path, place, content):
    with path.open("r+b") as file:
        file.seek(place)
        file.write(content)


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.glob("maniple.db*") if file.is_file()}


async def refused(path, error=StoreCorrupt):
    before = contents(path.parent)
    with pytest.raises(error) as raised:
        async with opened(path):
            pass
    after = contents(path.parent)
    for name in ("maniple.db", "maniple.db-wal"):
        assert after.get(name) == before.get(name)
    assert str(path) in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("place", [0, 16, 50], ids=["magic", "page size", "header"])
async def test_a_file_with_a_garbage_head_is_refused_and_left_as_it_is(tmp_path, place):
    path = tmp_path / "maniple.db"
    await filled(path)
    overwrite(path, place, os.urandom(200))
    assert "backup" in await refused(path)


async def test_a_file_that_never_was_a_database_is_refused(tmp_path):
    path = tmp_path / "maniple.db"
    path.write_text("Dear diary, " * 1000)
    await refused(path)


async def test_the_file_and_its_log_are_its_owners_alone(tmp_path):
    path = tmp_path / "new" / "maniple.db"
    async with opened(path) as store:
        await stored_run(store)
        for file in (path, path.with_name("maniple.db-wal"), path.parent):
            assert file.stat().st_mode & 0o077 == 0


async def test_another_programs_database_is_refused(tmp_path):
    path = tmp_path / "maniple.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
        connection.commit()
    with pytest.raises(StoreError, match="another program"):
        async with opened(path):
            pass
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("bookmarks",)]


async def test_garbage_in_the_middle_of_a_file_is_found_by_the_check_and_named_when_met(tmp_path):
    path = tmp_path / "maniple.db"
    run = await filled(path)
    content = path.read_bytes()
    for place in range(0, len(content), 4096):
        if b"word 1" in content[place : place + 4096]:
            overwrite(path, place, os.urandom(4096))
    async with opened(path) as store:
        assert await store.check()
        with pytest.raises(StoreCorrupt, match="backup"):
            await store.events.read(run.run_id, 0, 10_000)


async def test_the_log_of_a_killed_writer_is_read(tmp_path):
    path = tmp_path / "maniple.db"
    assert killed_in_the_middle(path).stat().st_size > 0
    async with opened(path) as store:
        (run,) = await store.runs.list("")
        assert len(await store.events.read(run.run_id)) >= 39 * 7


async def test_a_log_cut_in_its_last_frame_is_read_up_to_there(tmp_path):
    path = tmp_path / "maniple.db"
    log = killed_in_the_middle(path)
    os.truncate(log, log.stat().st_size - 1000)
    async with opened(path) as store:
        assert await store.check() == []


async def test_a_last_page_of_which_only_the_head_was_written_is_no_damage(tmp_path):
    """In a restarted log the page itself is an older one, so the file's length shows nothing."""
    path = tmp_path / "maniple.db"
    log = killed_in_the_middle(path)
    overwrite(log, log.stat().st_size - 4096, os.urandom(4096))
    async with opened(path) as store:
        assert await store.check() == []


async def test_a_wrong_page_before_the_last_is_damage_though_it_belongs_to_the_newest_commit(tmp_path):
    path = tmp_path / "maniple.db"
    log = killed_in_the_middle(path)
    overwrite(log, log.stat().st_size - 2 * 4096 - 24, os.urandom(4096))
    assert "-wal" in await refused(path)


@pytest.mark.parametrize("place", [0, 8, 24, 32 + 30, 32 + 4096 + 24 + 9])
async def test_a_log_with_garbage_in_it_is_refused_and_left_as_it_is(tmp_path, place):
    path = tmp_path / "maniple.db"
    overwrite(killed_in_the_middle(path), place, os.urandom(64))
    assert "-wal" in await refused(path)


async def test_a_log_of_nothing_but_garbage_is_refused(tmp_path):
    path = tmp_path / "maniple.db"
    log = killed_in_the_middle(path)
    log.write_bytes(os.urandom(log.stat().st_size))
    await refused(path)


async def test_with_the_damaged_log_moved_away_the_file_opens(tmp_path):
    path = tmp_path / "maniple.db"
    await filled(path)
    log = killed_in_the_middle(path)
    overwrite(log, 0, os.urandom(4096))
    await refused(path)
    shutil.move(log, tmp_path / "kept-wal")
    async with opened(path) as store:
        assert await store.check() == []
        assert await store.runs.list("")
