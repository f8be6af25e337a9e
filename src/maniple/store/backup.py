"""A copy of all that is kept, made while others work with it."""

import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from maniple.store.configured import ARTIFACTS, DATABASE, Place
from maniple.store.faults import told
from maniple.store.sqlite.connection import connect
from maniple.store.waiting import in_thread


async def back_up(file: Path, artifacts: Place, folder: Path) -> None:
    """Copy a database and its artifacts into a new folder, which can stand for a `data_dir`.

    The database is copied as it is at one moment. Raises `FileExistsError`, or `StoreError` with what to do,
    and then there is no such folder.
    """
    await in_thread(lambda: _copy(file, artifacts, folder))


def _copy(file: Path, artifacts: Place, folder: Path) -> None:
    if folder.exists():
        raise FileExistsError(folder)
    with told(folder):
        folder.mkdir(mode=0o700, parents=True)
        try:
            known = _copy_rows(file, folder / DATABASE)
            # After the rows: a content lies there before its row does.
            (folder / ARTIFACTS).mkdir(mode=0o700)
            for contents in filter(None, (artifacts.earlier, artifacts.folder)):
                _copy_contents(contents, known, folder / ARTIFACTS)
        except BaseException:  # whatever happened, no half of a copy is left
            shutil.rmtree(folder, ignore_errors=True)
            raise


def _copy_rows(file: Path, copy: Path) -> set[str]:
    """Copy the database; return the ids of its artifacts."""
    copy.touch(0o600)
    with closing(connect(file)) as connection:
        # Not SQLite's backup API: that begins anew whenever another process writes.
        connection.execute("VACUUM INTO ?", [str(copy)])
    with closing(sqlite3.connect(copy)) as copied:
        return {name for (name,) in copied.execute("SELECT artifact_id FROM artifacts").fetchall()}


def _copy_contents(contents: Path, known: set[str], copies: Path) -> None:
    if not contents.exists():
        return
    for content in contents.iterdir():
        if content.name in known and content.is_file() and not content.is_symlink():
            with suppress(FileNotFoundError):  # its thread was deleted meanwhile
                shutil.copy2(content, copies / content.name, follow_symlinks=False)
