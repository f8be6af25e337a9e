"""Translates errors of PostgreSQL into a `StoreError` that names the database and the remedy."""

import psycopg
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout

from maniple.errors import (
    RunTakenOver,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
)

FENCED = "MP001"
"""The SQLSTATE with which a fence refuses a row: another process drives its run."""
_LASTING = (PoolClosed, errors.DiskFull, errors.InvalidAuthorizationSpecification, errors.InvalidPassword)
_SLEPT = errors.IdleInTransactionSessionTimeout
"""The server ended a transaction whose process did not go on with it within its lease."""
_BUSY = (
    errors.LockNotAvailable,
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.QueryCanceled,
    PoolTimeout,
    _SLEPT,
)
_READ_ONLY = (errors.ReadOnlySqlTransaction, errors.InsufficientPrivilege)
_CORRUPT = (errors.DataCorrupted, errors.IndexCorrupted)
_NO_TABLE = (
    errors.UndefinedTable,
    errors.UndefinedColumn,
    errors.UndefinedFunction,
    errors.InvalidSchemaName,
)


def is_passing(error: Exception) -> bool:
    """Return whether the same call may succeed soon: the server is away, or two transactions met."""
    passing = psycopg.OperationalError | OSError | _SLEPT
    return isinstance(error, passing) and not isinstance(error, _LASTING)


def takes_no_writes(error: Exception) -> bool:
    """Return whether the server answers and cannot be written: its disk is full, or it is read-only."""
    return isinstance(error, errors.DiskFull | errors.ReadOnlySqlTransaction)


def from_postgres_error(error: Exception, database: str) -> StoreError:
    """Return the `StoreError` for an error of PostgreSQL; `database` names it in the message."""
    reason = _reason(error)
    if isinstance(error, OverflowError | psycopg.DataError):
        return StoreError(f"A value cannot be stored ({reason}). Nothing was stored.")
    if isinstance(error, UnicodeEncodeError):
        return StoreError(f"Only valid Unicode is stored ({reason}). Send valid text.")
    if isinstance(error, psycopg.DatabaseError) and error.sqlstate == FENCED:
        return RunTakenOver(
            f"Another process goes on with what this one drove ({reason}). Nothing was stored."
        )
    if isinstance(error, psycopg.IntegrityError):
        return StoreError(
            f"A row conflicts with the content of {database} ({reason}): its thread or run was deleted, or "
            "the row exists already."
        )
    return _server_error(error, database, reason)


def _server_error(error: Exception, database: str, reason: str) -> StoreError:
    match error:
        case errors.DiskFull():
            return StoreFull(
                f"The disk of {database} is full. Stored data is safe. Free some space and try again."
            )
        case error if isinstance(error, _READ_ONLY):
            return StoreReadOnly(
                f"{database} cannot be written ({reason}). Give the user of store.url the right to do so, or "
                "name the primary server in store.url."
            )
        case error if isinstance(error, _CORRUPT):
            return StoreCorrupt(f"{database} is damaged ({reason}). Restore a backup.")
        case error if isinstance(error, _NO_TABLE):
            return StoreError(f"{database} lacks a table ({reason}). Run: maniple db migrate")
        case error if isinstance(error, _BUSY):
            return StoreBusy(f"{database} is busy ({reason}). Try again.")
        case psycopg.OperationalError() | OSError():
            return StoreUnreachable(
                f"{database} cannot be reached ({reason}). Start the server, or correct store.url."
            )
        case _:
            return StoreError(f"{database} could not be read or written ({reason}).")


def _reason(error: Exception) -> str:
    """Return the message without its details, which may hold stored values."""
    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        return error.diag.message_primary
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
