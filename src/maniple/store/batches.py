"""Batches of tasks and their items, as every database stores them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Protocol

from maniple.store.statements import Statements, column_names, column_value, conditions, insert_sql

BatchDriver = Literal["server", "terminal"]
ItemState = Literal["waiting", "started", "accepted", "rejected", "failed", "left_out"]
_INSERTED_ROWS = 500
_MAX_NAMED = 20


@dataclass(frozen=True, slots=True)
class Batch:
    """Many tasks that are done as runs, `parallel` at a time, under one budget.

    `request`, `budget` and `rule` (what an answer must be) are JSON. Each item has at most `attempts` runs.
    """

    batch_id: str
    owner: str
    driver: BatchDriver
    name: str
    request: str
    budget: str
    rule: str
    parallel: int
    attempts: int
    created_at: float
    is_open: bool = True


@dataclass(frozen=True, slots=True)
class BatchItem:
    """One task. `run_id` is that of its newest attempt; the amounts are of the attempts that have ended."""

    number: int
    input: str
    state: ItemState = "waiting"
    attempt: int = 0
    run_id: str = ""
    reason: str = ""
    tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    seconds: float = 0.0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class BatchTotals:
    """How many items are in each state, and what their attempts have used."""

    counts: Mapping[ItemState, int]
    tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    seconds: float = 0.0
    cost: float = 0.0


class BatchTable(Protocol):
    """Batches, each with its items."""

    async def add(self, batch: Batch, items: Sequence[BatchItem]) -> None:
        """Store a batch; it is open when all of its items are stored."""
        ...

    async def get(self, batch_id: str, owner: str | None) -> Batch | None:
        """Return a batch of this owner; None stands for any owner."""
        ...

    async def list(self, owner: str, limit: int = 100) -> Sequence[Batch]:
        """Return the owner's batches, newest first."""
        ...

    async def list_named(self, owner: str, beginning: str) -> Sequence[Batch]:
        """Return the owner's batches whose ids begin so, newest first, a few at most."""
        ...

    async def list_open(self, driver: BatchDriver) -> Sequence[Batch]:
        """Return the batches that a program has to work on, oldest first."""
        ...

    async def set_open(self, batch_id: str, *, is_open: bool) -> None:
        """Let a batch be worked on, or not any more."""
        ...

    async def set_limits(self, batch_id: str, budget: str, parallel: int) -> None:
        """Replace the budget (JSON) of a batch, and how many of its runs work at a time."""
        ...

    async def delete(self, batch_id: str, owner: str) -> bool:
        """Delete a batch with its items; return whether it existed. Its runs stay."""
        ...

    async def list_items(
        self, batch_id: str, state: ItemState | None = None, after: int = 0, limit: int = 500
    ) -> Sequence[BatchItem]:
        """Return the items after number `after`, only those of `state` if given, by their numbers."""
        ...

    async def list_started(self, batch_id: str, limit: int = 500) -> Sequence[tuple[BatchItem, str | None]]:
        """Return the items in the state `started`, each with the status of its run; None without a run."""
        ...

    async def change_item(self, batch_id: str, item: BatchItem, before: ItemState) -> bool:
        """Replace an item that is in the state `before`; return False if it is not any more."""
        ...

    async def change_all(self, batch_id: str, before: ItemState, after: ItemState, reason: str) -> None:
        """Move all items of a state to another one; items that wait have all their attempts again."""
        ...

    async def total(self, batch_id: str) -> BatchTotals:
        """Return how many items are in each state, and what they have used."""
        ...


_COLUMNS = column_names(Batch)
_SELECTED = ", ".join(_COLUMNS)
_ITEM_COLUMNS = column_names(BatchItem)
_ITEMS = ", ".join(_ITEM_COLUMNS)
_AMOUNTS = tuple(one.name for one in fields(BatchTotals) if one.name != "counts")


class SqlBatches:
    """See `BatchTable`."""

    def __init__(self, database: Statements) -> None:
        self._database = database

    async def add(self, batch: Batch, items: Sequence[BatchItem]) -> None:
        values = [column_value(getattr(batch, name)) for name in _COLUMNS]
        await self._database.execute(insert_sql("batches", _COLUMNS), [*values[:-1], 0])
        row = f"({', '.join('?' * (len(_ITEM_COLUMNS) + 1))})"
        for start in range(0, len(items), _INSERTED_ROWS):
            some = items[start : start + _INSERTED_ROWS]
            rows = [
                column_value(value)
                for item in some
                for value in (batch.batch_id, *(getattr(item, name) for name in _ITEM_COLUMNS))
            ]
            marks = ", ".join([row] * len(some))
            sql = f"INSERT INTO batch_items (batch_id, {_ITEMS}) VALUES {marks} ON CONFLICT DO NOTHING"
            await self._database.execute(sql, rows)
        await self.set_open(batch.batch_id, is_open=True)

    async def get(self, batch_id: str, owner: str | None) -> Batch | None:
        where, values = conditions({"batch_id = ?": batch_id, "owner = ?": owner})
        rows = await self._database.fetch(f"SELECT {_SELECTED} FROM batches {where}", values)
        return _make_batch(*rows[0]) if rows else None

    async def list(self, owner: str, limit: int = 100) -> Sequence[Batch]:
        sql = f"SELECT {_SELECTED} FROM batches WHERE owner = ? ORDER BY position DESC LIMIT ?"
        return [_make_batch(*row) for row in await self._database.fetch(sql, (owner, limit))]

    async def list_named(self, owner: str, beginning: str) -> Sequence[Batch]:
        named = "owner = ? AND substr(batch_id, 1, ?) = ? ORDER BY position DESC LIMIT ?"
        values = (owner, len(beginning), beginning, _MAX_NAMED)
        rows = await self._database.fetch(f"SELECT {_SELECTED} FROM batches WHERE {named}", values)
        return [_make_batch(*row) for row in rows]

    async def list_open(self, driver: BatchDriver) -> Sequence[Batch]:
        sql = f"SELECT {_SELECTED} FROM batches WHERE driver = ? AND is_open = 1 ORDER BY position"
        return [_make_batch(*row) for row in await self._database.fetch(sql, (driver,))]

    async def set_open(self, batch_id: str, *, is_open: bool) -> None:
        sql = "UPDATE batches SET is_open = ? WHERE batch_id = ?"
        await self._database.execute(sql, (int(is_open), batch_id))

    async def set_limits(self, batch_id: str, budget: str, parallel: int) -> None:
        sql = "UPDATE batches SET budget = ?, parallel = ? WHERE batch_id = ?"
        await self._database.execute(sql, (budget, parallel, batch_id))

    async def delete(self, batch_id: str, owner: str) -> bool:
        sql = "DELETE FROM batches WHERE batch_id = ? AND owner = ? RETURNING 1"
        return bool(await self._database.execute(sql, (batch_id, owner)))

    async def list_items(
        self, batch_id: str, state: ItemState | None = None, after: int = 0, limit: int = 500
    ) -> Sequence[BatchItem]:
        where, values = conditions({"batch_id = ?": batch_id, "number > ?": after, "state = ?": state})
        sql = f"SELECT {_ITEMS} FROM batch_items {where} ORDER BY number LIMIT ?"
        return [BatchItem(*row) for row in await self._database.fetch(sql, (*values, limit))]

    async def list_started(self, batch_id: str, limit: int = 500) -> Sequence[tuple[BatchItem, str | None]]:
        items = ", ".join(f"item.{name}" for name in _ITEM_COLUMNS)
        # Each number is above 0; without that condition SQLite would read all items of the batch.
        sql = (
            f"SELECT {items}, runs.status FROM batch_items item LEFT JOIN runs ON runs.run_id = item.run_id "
            "WHERE batch_id = ? AND item.state = 'started' AND number > 0 ORDER BY number LIMIT ?"
        )
        rows = await self._database.fetch(sql, (batch_id, limit))
        return [(BatchItem(*row[:-1]), row[-1]) for row in rows]

    async def change_item(self, batch_id: str, item: BatchItem, before: ItemState) -> bool:
        assigned = ", ".join(f"{name} = ?" for name in _ITEM_COLUMNS)
        values = [column_value(getattr(item, name)) for name in _ITEM_COLUMNS]
        sql = f"UPDATE batch_items SET {assigned} WHERE batch_id = ? AND number = ? AND state = ? RETURNING 1"
        return bool(await self._database.execute(sql, (*values, batch_id, item.number, before)))

    async def change_all(self, batch_id: str, before: ItemState, after: ItemState, reason: str) -> None:
        sql = "UPDATE batch_items SET state = ?, reason = ? WHERE batch_id = ? AND state = ?"
        await self._database.execute(sql, (after, column_value(reason), batch_id, before))

    async def total(self, batch_id: str) -> BatchTotals:
        sql = f"SELECT state, items, {', '.join(_AMOUNTS)} FROM batch_totals WHERE batch_id = ?"
        rows = await self._database.fetch(sql, (batch_id,))
        columns = list(zip(*(row[2:] for row in rows), strict=True)) or [()] * len(_AMOUNTS)
        tokens, models, tools = (int(sum(one)) for one in columns[:3])
        seconds, cost = (float(sum(one)) for one in columns[3:])
        counts = {row[0]: row[1] for row in rows if row[1]}
        return BatchTotals(counts, tokens, models, tools, seconds, cost)


def _make_batch(*row: Any) -> Batch:
    named: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
    named["is_open"] = bool(named["is_open"])
    return Batch(**named)
