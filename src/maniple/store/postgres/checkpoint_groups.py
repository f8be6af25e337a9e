"""Stores what runs put into LangGraph's tables at about the same time in one statement."""

import asyncio
from collections.abc import Iterable, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from maniple.errors import StoreError
from maniple.store.executors import wait_for_completion
from maniple.store.postgres.database import PostgresDatabase

WRITES_SECONDS = 0.005
"""How long the writes of a task wait for the checkpoint that mostly follows them: no run waits for them."""
MAX_GROUP_BYTES = 4_000_000
"""The size from which on values of others are not added to a group."""


class CheckpointRow(NamedTuple):
    """A row of `checkpoints`; `checkpoint` and `metadata` are JSON."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    parent_checkpoint_id: str | None
    checkpoint: str
    metadata: str
    run_id: str | None


class BlobRow(NamedTuple):
    """A row of `checkpoint_blobs`."""

    thread_id: str
    checkpoint_ns: str
    channel: str
    version: str
    type: str
    blob: bytes
    run_id: str | None


class WriteRow(NamedTuple):
    """A row of `checkpoint_writes`."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str | None
    task_id: str
    task_path: str
    run_id: str | None
    idx: int
    channel: str
    type: str
    blob: bytes


_CASTS = {"idx": "%s::integer[]", "blob": "%b::bytea[]"}
_JSON = ("checkpoint", "metadata")


def _insert(table: str, row: type[BlobRow | CheckpointRow | WriteRow]) -> str:
    """Return the statement that inserts rows given as an array for each column."""
    names = row._fields
    arrays = ", ".join(_CASTS.get(name, "%s::text[]") for name in names)
    values = ", ".join(f"{name}::jsonb" if name in _JSON else name for name in names)
    return (
        f"INSERT INTO {table} ({', '.join(names)}) "
        f"SELECT {values} FROM unnest({arrays}) given ({', '.join(names)}) ON CONFLICT "
    )


# One statement, and so a transaction of its own: one way to the server and back.
# Stored again, a checkpoint is the newest one, as in SQLite.
_STORE = (
    f"WITH blobs AS ({_insert('checkpoint_blobs', BlobRow)}"
    "(thread_id, checkpoint_ns, channel, version) DO NOTHING), "
    f"writes AS ({_insert('checkpoint_writes', WriteRow)}"
    "(thread_id, checkpoint_ns, checkpoint_id, task_id, idx) DO NOTHING) "
    f"{_insert('checkpoints', CheckpointRow)}(thread_id, checkpoint_ns, checkpoint_id) DO UPDATE SET "
    "checkpoint = excluded.checkpoint, metadata = excluded.metadata, run_id = excluded.run_id, "
    "position = DEFAULT"
)
_REPLACE = (
    f"{_insert('checkpoint_writes', WriteRow)}(thread_id, checkpoint_ns, checkpoint_id, task_id, idx) "
    "DO UPDATE SET channel = excluded.channel, type = excluded.type, blob = excluded.blob, "
    "run_id = excluded.run_id"
)


@dataclass(slots=True)
class CheckpointRows:
    """Rows that belong together."""

    blobs: Sequence[BlobRow] = ()
    writes: Sequence[WriteRow] = ()
    checkpoints: Sequence[CheckpointRow] = ()

    @property
    def size(self) -> int:
        """Return the bytes of the values."""
        blobs = sum(len(row.blob) for rows in (self.blobs, self.writes) for row in rows)
        return blobs + sum(len(row.checkpoint) for row in self.checkpoints)


@dataclass(slots=True, eq=False)
class _Group:
    """Rows that are stored together; `is_stored` says whether they were."""

    rows: list[CheckpointRows] = field(default_factory=list[CheckpointRows])
    size: int = 0
    is_urgent: asyncio.Event = field(default_factory=asyncio.Event)
    is_stored: asyncio.Future[bool] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class CheckpointGroups:
    """Stores rows of LangGraph's tables. Every call may raise `StoreError`.

    Those that come together, or while others are being stored, are one group. A group that cannot be stored,
    as by the fence of one run, is stored again by each of its callers alone, who waits as its run does.
    """

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._open: _Group | None = None
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def store(self, rows: CheckpointRows) -> None:
        """Store new rows; a stored checkpoint becomes the newest one again, other stored rows stay."""
        group = self._open
        if group is None:
            group = self._begin()
        group.rows.append(rows)
        group.size += rows.size
        if rows.checkpoints:
            group.is_urgent.set()
        if group.size > MAX_GROUP_BYTES:
            group.is_urgent.set()
            self._open = None
        if not await wait_for_completion(group.is_stored):
            await self._database.execute(_STORE, _values([rows]))

    async def replace_writes(self, rows: Iterable[WriteRow]) -> None:
        """Store writes in place of those that are stored."""
        await self._database.execute(_REPLACE, _columns([*rows], WriteRow))

    def _begin(self) -> _Group:
        group = self._open = _Group()
        # Without what the first caller's context says about its run: a group is of all of them.
        task = asyncio.create_task(self._write(group), name="checkpoints", context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return group

    async def _write(self, group: _Group) -> None:
        is_stored = False
        try:
            await asyncio.wait(
                {urgent := asyncio.ensure_future(group.is_urgent.wait())}, timeout=WRITES_SECONDS
            )
            urgent.cancel()
            async with self._lock:
                if self._open is group:
                    self._open = None
                await self._database.execute(_STORE, _values(group.rows))
                is_stored = True
        except StoreError:
            pass  # each caller tries again, and raises its own error
        finally:
            if self._open is group:
                self._open = None
            group.is_stored.set_result(is_stored)


def _values(rows: Iterable[CheckpointRows]) -> list[list[Any]]:
    """Return the values of `_STORE`."""
    blobs: list[BlobRow] = []
    writes: list[WriteRow] = []
    checkpoints: list[CheckpointRow] = []
    for one in rows:
        blobs += one.blobs
        writes += one.writes
        checkpoints += one.checkpoints
    return [
        *_columns(blobs, BlobRow),
        *_columns(writes, WriteRow),
        *_columns(checkpoints, CheckpointRow),
    ]


def _columns(
    rows: Sequence[tuple[Any, ...]], row: type[BlobRow | CheckpointRow | WriteRow]
) -> list[list[Any]]:
    """Return the columns of some rows."""
    return [[one[place] for one in rows] for place in range(len(row._fields))]
