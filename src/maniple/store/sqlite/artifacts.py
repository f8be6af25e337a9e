"""The table of artifacts; their contents are files beside the database."""

import time
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from maniple.errors import StoreError
from maniple.store.files import ArtifactFiles, safe_name
from maniple.store.records import Artifact, RunRecord
from maniple.store.sqlite.connection import Database
from maniple.store.sqlite.pages import first
from maniple.store.waiting import to_the_end
from maniple.text import whole

_COLUMNS = "artifact_id, run_id, thread_id, owner, name, media_type, size, sha256, created_at"


class SqliteArtifacts:
    """See `protocols.Artifacts`."""

    def __init__(self, database: Database, files: ArtifactFiles) -> None:
        self._database = database
        self._files = files

    async def add(
        self, run: RunRecord, name: str, media_type: str, data: bytes | Path | BinaryIO
    ) -> Artifact:
        return await to_the_end(self._add(run, name, media_type, data))

    async def get(self, artifact_id: str, owner: str | None) -> Artifact | None:
        sql = f"SELECT {_COLUMNS} FROM artifacts WHERE artifact_id = ? AND owner = coalesce(?, owner)"
        rows = await self._database.read(lambda c: c.execute(sql, (artifact_id, owner)).fetchall())
        return first(Artifact, rows)

    async def open(self, artifact: Artifact) -> Path:
        return await self._files.path(artifact.artifact_id, artifact.size)

    async def of_run(self, run_id: str) -> list[Artifact]:
        sql = f"SELECT {_COLUMNS} FROM artifacts WHERE run_id = ? ORDER BY position"
        rows = await self._database.read(lambda c: c.execute(sql, (run_id,)).fetchall())
        return [Artifact(*row) for row in rows]

    async def of_thread(self, thread_id: str) -> list[Artifact]:
        runs = "SELECT run_id FROM runs WHERE thread_id = ?"
        sql = f"SELECT {_COLUMNS} FROM artifacts WHERE run_id IN ({runs}) ORDER BY position"
        rows = await self._database.read(lambda c: c.execute(sql, (thread_id,)).fetchall())
        return [Artifact(*row) for row in rows]

    async def _add(
        self, run: RunRecord, name: str, media_type: str, data: bytes | Path | BinaryIO
    ) -> Artifact:
        # The file before the row: a crash between them leaves a stray file, never a row without content.
        artifact_id = str(uuid4())
        written = await self._files.write(artifact_id, data)
        values = (artifact_id, run.run_id, run.thread_id, run.owner, safe_name(name), whole(media_type))
        row = (*values, written.size, written.sha256, time.time())
        sql = f"INSERT INTO artifacts ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        try:
            await self._database.execute(sql, row)
        except StoreError:
            await self._files.remove([artifact_id])
            raise
        return Artifact(*row)
