"""What tables with the same SQL in every database need of one: single statements."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Protocol

from maniple.text import fix_surrogates

Row = tuple[Any, ...]


class Statements(Protocol):
    """Runs statements with `?` for each value. Each is a transaction by itself.

    An `execute` may be repeated when its answer was lost: done twice, it must have the effect of once.
    """

    async def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run a statement that writes; return its rows."""
        ...

    async def fetch(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return all rows of a query."""
        ...


class PercentStatements:
    """Statements with `?` for a database whose own mark is `%s`; no text in one may have either."""

    def __init__(self, database: Statements) -> None:
        self._database = database

    async def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return await self._database.execute(sql.replace("?", "%s"), values)

    async def fetch(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return await self._database.fetch(sql.replace("?", "%s"), values)


def column_names(record: type[Any]) -> tuple[str, ...]:
    """Return the columns of a record whose fields have their names."""
    return tuple(field.name for field in fields(record))


def insert_sql(table: str, columns: Iterable[str]) -> str:
    """Return the statement that inserts a row, unless one with its key exists."""
    names = tuple(columns)
    marks = ", ".join("?" * len(names))
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks}) ON CONFLICT DO NOTHING RETURNING 1"


def column_value(value: Any) -> Any:
    """Return a value as it is stored: a boolean is 0 or 1, and no text has a lone surrogate."""
    return int(value) if isinstance(value, bool) else fix_surrogates(value)


def conditions(given: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return the WHERE clause and the values of conditions with one `?` each; None leaves one out."""
    used = {condition: value for condition, value in given.items() if value is not None}
    return (f"WHERE {' AND '.join(used)}" if used else ""), list(used.values())
