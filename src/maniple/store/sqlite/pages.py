"""Lists in the order of arrival, a page at a time."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")

_MICROSECOND = 1e-6


def page(
    connection: sqlite3.Connection,
    select: tuple[str, str],
    where: Mapping[str, str | None],
    limit: int,
    before: float | None,
) -> list[tuple]:
    """Return (columns, table)'s rows that match `where`, newest first.

    `where` has conditions of one `?` each and what stands there; a condition on None is left out.
    `before` is the time of the last row of the page before; were it deleted, of the next newer one.
    """
    columns, table = select
    given = {condition: value for condition, value in where.items() if value is not None}
    conditions = list(given)
    values: list[str | float] = list(given.values())
    if before is not None:
        conditions.append(
            f"position < coalesce((SELECT position FROM {table} WHERE created_at >= ? "
            "ORDER BY created_at LIMIT 1), 9e18)"
        )
        values.append(before)
    matching = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    sql = f"SELECT {columns} FROM {table} {matching} ORDER BY position DESC LIMIT ?"
    return connection.execute(sql, (*values, max(limit, 0))).fetchall()


def unused_time(connection: sqlite3.Connection, table: str, at: float) -> float:
    """Return `at`, or as little later as makes it the only one in `table`."""
    sql = f"SELECT max(created_at) FROM {table} WHERE created_at >= ? AND created_at < ?"
    if connection.execute(f"SELECT 1 FROM {table} WHERE created_at = ?", (at,)).fetchone() is None:
        return at
    (latest,) = connection.execute(sql, (at, at + 1)).fetchone()
    return unused_time(connection, table, latest + _MICROSECOND)


def first(make: Callable[..., T], rows: Sequence[tuple]) -> T | None:
    """Return what `make` makes of the only row, None if there is none."""
    return make(*rows[0]) if rows else None
