"""The schema's versions: script N makes version N of version N - 1."""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from importlib import resources
from pathlib import Path

from maniple.errors import StoreError

APPLICATION_ID = 0x4D4E504C
"""Marks the file as maniple's (https://www.sqlite.org/pragma.html#pragma_application_id)."""
_LANGGRAPH = {"checkpoints", "writes"}


def scripts() -> list[str]:
    """Return the SQL of every version, the first one first."""
    folder = resources.files("maniple.store.sqlite") / "schema"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(folder / name).read_text(encoding="utf-8") for name in names]


def migrate(connection: sqlite3.Connection, path: Path, versions: Sequence[str]) -> None:
    """Bring a file to the newest version, each step in one transaction; an older file is copied before.

    The copy is FILE.schema-VERSION.backup. Raises `StoreError` for a file of a newer maniple or of another
    program.
    """
    _refuse_foreign(connection, path)
    version = _version(connection)
    if version > len(versions):
        raise StoreError(
            f"{path} was written by a newer maniple (schema {version}, this one knows {len(versions)}). "
            "Update maniple, or name another file in store.path."
        )
    if 0 < version < len(versions):
        _copy(connection, path.with_name(f"{path.name}.schema-{version}"))
    for number in range(version + 1, len(versions) + 1):
        _step(connection, number, versions[number - 1])


def _step(connection: sqlite3.Connection, number: int, script: str) -> None:
    # `executescript` would commit a transaction that was open before: so it opens its own.
    try:
        connection.executescript(
            f"BEGIN IMMEDIATE; {script}; PRAGMA application_id = {APPLICATION_ID}; "
            f"PRAGMA user_version = {number}; COMMIT;"
        )
    except sqlite3.Error:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


def _refuse_foreign(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID:
        return
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if tables - _LANGGRAPH:
        raise StoreError(f"{path} is the database of another program. Name another file in store.path.")


def _copy(connection: sqlite3.Connection, stem: Path) -> None:
    copy, number = stem.with_name(f"{stem.name}.backup"), 1
    while copy.exists():
        number += 1
        copy = stem.with_name(f"{stem.name}.{number}.backup")
    copy.touch(0o600, exist_ok=False)
    try:
        connection.execute("VACUUM INTO ?", [str(copy)])
    except sqlite3.Error:
        copy.unlink()
        raise
