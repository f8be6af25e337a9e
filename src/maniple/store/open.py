"""Opening a store."""

import asyncio
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path

from maniple.errors import StoreReadOnly
from maniple.store.protocols import Store

TEMPORARY_PREFIX = "maniple-store-"
_STALE_SECONDS = 600.0
"""A younger folder may belong to a process that has not locked it yet."""


def open_store(
    path: Path, artifacts: Path, *, server: bool, earlier: Path | None = None
) -> AbstractAsyncContextManager[Store]:
    """Open the store in the SQLite file `path`.

    `artifacts` is the directory of the artifacts' contents and belongs to this file alone; `earlier` is a
    directory that several databases shared in earlier versions. Only one server may have a file open; other
    processes (`server=False`) may open it at the same time. Raises `StoreError`.
    """
    from maniple.store.files import ArtifactFiles
    from maniple.store.sqlite import open_sqlite

    return open_sqlite(path, ArtifactFiles(artifacts, earlier), server=server)


@asynccontextmanager
async def open_temporary_store(folder: Path | None = None) -> AsyncIterator[Store]:
    """Open an empty store below `folder` (default: the system's temporary folder); closing deletes it.

    A killed process cannot delete its store: the next call deletes it. Raises `StoreError`.
    """
    home, lock = await asyncio.to_thread(_make_home, folder)
    try:
        async with open_store(home / "store.db", home / "artifacts", server=True) as store:
            yield store
    finally:
        os.close(lock)
        await asyncio.to_thread(shutil.rmtree, home, ignore_errors=True)


def _make_home(folder: Path | None) -> tuple[Path, int]:
    """Return a new folder and the descriptor that locks it. The kernel frees the lock of a dead process."""
    parent = folder or Path(tempfile.gettempdir())
    _delete_stale_homes(parent)
    try:
        home = Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX, dir=parent))
        lock = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise StoreReadOnly(
            f"{parent} cannot be written ({error.strerror}). Set TMPDIR to a folder that can be written."
        ) from error
    fcntl.flock(lock, fcntl.LOCK_EX)  # systemd-tmpfiles leaves a locked folder alone, too
    return home, lock


def _delete_stale_homes(parent: Path) -> None:
    for home in parent.glob(f"{TEMPORARY_PREFIX}*"):
        with suppress(OSError):  # another user's, or deleted meanwhile
            found = home.lstat()
            if found.st_uid != os.geteuid() or time.time() - found.st_mtime < _STALE_SECONDS:
                continue
            lock = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(home, ignore_errors=True)
            finally:
                os.close(lock)
