"""The table of conversations."""

import re
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import replace

from maniple.store.files import ArtifactFiles
from maniple.store.records import Thread
from maniple.store.sqlite.checkpoints import delete_checkpoints
from maniple.store.sqlite.connection import Database
from maniple.store.sqlite.pages import first, page, unused_time
from maniple.store.sqlite.spent import keep_used
from maniple.store.waiting import to_the_end
from maniple.text import whole

_COLUMNS = "thread_id, owner, title, created_at, updated_at"
_TITLED = r"title LIKE ? ESCAPE '\'"


class SqliteThreads:
    """See `protocols.Threads`."""

    def __init__(self, database: Database, files: ArtifactFiles) -> None:
        self._database = database
        self._files = files

    async def create(self, thread: Thread) -> Thread:
        def insert(connection: sqlite3.Connection) -> Thread:
            kept = replace(
                thread,
                title=whole(thread.title),
                created_at=unused_time(connection, "threads", thread.created_at),
            )
            connection.execute(
                f"INSERT INTO threads ({_COLUMNS}) VALUES (?, ?, ?, ?, ?)",
                (kept.thread_id, kept.owner, kept.title, kept.created_at, kept.updated_at),
            )
            return kept

        return await self._database.write(insert)

    async def get(self, thread_id: str, owner: str | None) -> Thread | None:
        sql = f"SELECT {_COLUMNS} FROM threads WHERE thread_id = ? AND owner = coalesce(?, owner)"
        rows = await self._database.read(lambda c: c.execute(sql, (thread_id, owner)).fetchall())
        return first(Thread, rows)

    async def list(
        self, owner: str | None, limit: int = 50, before: float | None = None, titled: str = ""
    ) -> Sequence[Thread]:
        where = {"owner = ?": owner, _TITLED: _pattern(titled) if titled else None}
        rows = await self._database.read(lambda c: page(c, (_COLUMNS, "threads"), where, limit, before))
        return [Thread(*row) for row in rows]

    async def touch(self, thread_id: str, title: str | None = None) -> None:
        sql = "UPDATE threads SET updated_at = ?, title = coalesce(?, title) WHERE thread_id = ?"
        await self._database.execute(sql, (time.time(), whole(title), thread_id))

    async def delete(self, thread_id: str) -> bool:
        def delete(connection: sqlite3.Connection) -> tuple[bool, list[str]]:
            files = connection.execute("SELECT artifact_id FROM artifacts WHERE thread_id = ?", (thread_id,))
            names = [name for (name,) in files]
            delete_checkpoints(connection, thread_id)
            keep_used(connection, thread_id)
            gone = connection.execute("DELETE FROM threads WHERE thread_id = ?", (thread_id,))
            return gone.rowcount > 0, names

        async def delete_all() -> bool:
            was_there, names = await self._database.write(delete)
            await self._files.remove(names)
            return was_there

        return await to_the_end(delete_all())


def _pattern(words: str) -> str:
    """Return what LIKE finds these words by, wherever they stand."""
    return "%" + re.sub(r"[%_\\]", r"\\\g<0>", whole(words)) + "%"
