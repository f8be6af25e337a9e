"""Translates errors of SQLite and the file system into a `StoreError` that names the file and the remedy."""

import errno
import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from maniple.errors import StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreReadOnly

RESERVE_BYTES = 1024 * 1024
"""A disk with less free space counts as full: the events and checkpoints of one run take more."""
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}


@contextmanager
def translate_errors(path: Path) -> Generator[None]:
    """Raise errors of SQLite and the file system that occur in the block as a `StoreError` about `path`."""
    try:
        yield
    except sqlite3.Error as error:
        raise from_sqlite_error(error, path) from error
    except OSError as error:
        raise from_os_error(error, path) from error
    except OverflowError as error:
        raise StoreError(
            f"{path} stores numbers of at most 64 bits ({error}). Nothing was stored."
        ) from error
    except UnicodeEncodeError as error:
        raise StoreError(f"{path} stores valid Unicode only ({error.reason}). Send valid text.") from error


def from_sqlite_error(error: sqlite3.Error, path: Path) -> StoreError:
    """Return the `StoreError` for an error of SQLite, by its result code (https://www.sqlite.org/rescode.html)."""
    match (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF:
        case sqlite3.SQLITE_FULL:
            return disk_full(path)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN:
            return read_only(path, str(error))
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return corrupt(path, str(error))
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreBusy(
                f"Another process has locked {path} ({error}). Try again. If the error stays, find that "
                f"process with: fuser {path}"
            )
        case sqlite3.SQLITE_CONSTRAINT:
            return StoreError(
                f"A row conflicts with the content of {path} ({error}): its thread or run was deleted, or "
                "the row exists already."
            )
        case _:
            return StoreError(f"{path} could not be read or written ({error}). Check the disk.")


def from_os_error(error: OSError, path: Path) -> StoreError:
    """Return the `StoreError` for an error of the operating system."""
    if error.errno in _FULL:
        return disk_full(path)
    if error.errno in _READ_ONLY:
        return read_only(path, error.strerror or str(error))
    return StoreError(f"{path} could not be read or written ({error.strerror}). Check the disk.")


def require_free_space(path: Path) -> None:
    """Raise `StoreFull` when the disk of `path` has less than `RESERVE_BYTES` free. Blocks on disk."""
    found = os.statvfs(path)
    if found.f_bavail * found.f_frsize < RESERVE_BYTES:
        raise disk_full(path)


def disk_full(path: Path) -> StoreFull:
    """Return the error for a disk without space."""
    return StoreFull(
        f"{path} cannot grow: the disk is full. Stored data is safe. Free some space and try again."
    )


def read_only(path: Path, reason: str) -> StoreReadOnly:
    """Return the error for a file or directory that cannot be written."""
    return StoreReadOnly(
        f"{path} cannot be opened or written ({reason}). Give this user write access to the file and its "
        "directory, or set store.path to another file."
    )


def corrupt_log(path: Path, reason: str) -> StoreCorrupt:
    """Return the error for a damaged write-ahead log."""
    return StoreCorrupt(
        f"The write-ahead log of {path} is damaged ({reason}). Nothing was changed. Restore a backup of the "
        f"file and its log, or discard the newest changes: mv {path}-wal {path}-wal.damaged"
    )


def corrupt(path: Path, reason: str) -> StoreCorrupt:
    """Return the error for a damaged file."""
    return StoreCorrupt(
        f"{path} is damaged or not a database ({reason}). It was not changed. Restore a backup, or move it "
        "and its -wal and -shm files away to start empty. `sqlite3 FILE .recover` may recover its content."
    )
