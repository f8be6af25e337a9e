"""A copy of all that is kept, made while others work with it."""

import shutil
from contextlib import closing, suppress
from pathlib import Path

from maniple.store.configured import ARTIFACTS, DATABASE
from maniple.store.faults import told
from maniple.store.sqlite.connection import connect
from maniple.store.waiting import in_thread


async def back_up(file: Path, artifacts: Path, folder: Path) -> None:
    """Copy a database and its artifacts into a new folder, which can stand for a `data_dir`.

    The database is copied as it is at one moment. Raises `FileExistsError`, or `StoreError` with what to do,
    and then there is no such folder.
    """
    await in_thread(lambda: _copy(file, artifacts, folder))


def _copy(file: Path, artifacts: Path, folder: Path) -> None:
    if folder.exists():
        raise FileExistsError(folder)
    with told(folder):
        folder.mkdir(mode=0o700, parents=True)
        try:
            _copy_rows(file, folder / DATABASE)
            # After the rows: a content lies there before its row does.
            _copy_contents(artifacts, folder / ARTIFACTS)
        except BaseException:  # whatever happened, no half of a copy is left
            shutil.rmtree(folder, ignore_errors=True)
            raise


def _copy_rows(file: Path, copy: Path) -> None:
    copy.touch(0o600)
    with closing(connect(file)) as connection:
        # Not SQLite's backup API: that begins anew whenever another process writes.
        connection.execute("VACUUM INTO ?", [str(copy)])


def _copy_contents(artifacts: Path, copies: Path) -> None:
    copies.mkdir(mode=0o700)
    if not artifacts.exists():
        return
    for content in artifacts.iterdir():
        if content.suffix != ".part" and content.is_file() and not content.is_symlink():
            with suppress(FileNotFoundError):  # its thread was deleted meanwhile
                shutil.copy2(content, copies / content.name, follow_symlinks=False)
