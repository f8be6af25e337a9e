"""What the disk and SQLite say, in words that tell people what to do."""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from maniple.errors import StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreReadOnly

RESERVE_BYTES = 1024 * 1024
"""Less room than that is none: the events and checkpoints of a single run take more."""
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Raise what SQLite and the disk raise within as the `StoreError` that names `path` and the remedy."""
    try:
        yield
    except sqlite3.Error as error:
        raise of_sqlite(error, path) from error
    except OSError as error:
        raise of_system(error, path) from error
    except OverflowError as error:
        raise StoreError(f"{path} takes numbers of 64 bits at most ({error}); nothing was stored.") from error
    except UnicodeEncodeError as error:
        raise StoreError(f"{path} takes whole characters only ({error.reason}); send valid text.") from error


def of_sqlite(error: sqlite3.Error, path: Path) -> StoreError:
    """Return the error to raise for one of SQLite's, see https://www.sqlite.org/rescode.html."""
    match (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF:
        case sqlite3.SQLITE_FULL:
            return full(path)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN:
            return read_only(path, str(error))
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return corrupt(path, str(error))
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreBusy(
                f"{path} is held by another process ({error}). Try again; if it stays so, look which process "
                f"has it open: fuser {path}"
            )
        case sqlite3.SQLITE_CONSTRAINT:
            return StoreError(
                f"What was to be stored in {path} does not fit to what is there ({error}): "
                "its thread or run was deleted, or it is stored already."
            )
        case _:
            return StoreError(f"{path} could not be read or written ({error}). Look at the disk's health.")


def of_system(error: OSError, path: Path) -> StoreError:
    """Return the error to raise for one of the operating system's."""
    if error.errno in _FULL:
        return full(path)
    if error.errno in _READ_ONLY:
        return read_only(path, error.strerror or str(error))
    return StoreError(f"{path} could not be read or written ({error.strerror}). Look at the disk's health.")


def refuse_full(path: Path) -> None:
    """Raise `StoreFull` when less than `RESERVE_BYTES` are free where `path` lies. Blocks on disk."""
    found = os.statvfs(path)
    if found.f_bavail * found.f_frsize < RESERVE_BYTES:
        raise full(path)


def full(path: Path) -> StoreFull:
    """Return the error for a disk without space."""
    return StoreFull(
        f"{path} cannot grow: the disk is full. What was stored before is safe; "
        "free some space and try again."
    )


def read_only(path: Path, why: str) -> StoreReadOnly:
    """Return the error for a file or directory that cannot be written."""
    return StoreReadOnly(
        f"{path} cannot be opened or written ({why}). Let this user write the file and its directory, "
        "or name another file in store.path."
    )


def corrupt_log(path: Path, why: str) -> StoreCorrupt:
    """Return the error for a damaged write-ahead log, `why` included."""
    return StoreCorrupt(
        f"The write-ahead log of {path} is damaged ({why}). Nothing was changed. Put a backup of the file "
        f"and its log in their place, or do without the newest changes: mv {path}-wal {path}-wal.damaged"
    )


def corrupt(path: Path, why: str) -> StoreCorrupt:
    """Return the error for a damaged file."""
    return StoreCorrupt(
        f"{path} is damaged or no database ({why}). It was left as it is. Put a backup in its place, or move "
        "it and its -wal and -shm files away to begin anew; `sqlite3 FILE .recover` may save what it holds."
    )
