"""Opens a PostgreSQL database and joins its tables to a store."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import uuid4

from langgraph.checkpoint.base import BaseCheckpointSaver

from maniple.errors import StoreError
from maniple.evidence import Evidence
from maniple.store.artifact_contents import ArtifactContents
from maniple.store.batches import SqlBatches
from maniple.store.executors import run_to_completion
from maniple.store.postgres.checkpoints import PostgresCheckpointHistory, PostgresSaver
from maniple.store.postgres.database import PostgresDatabase, ProcessTimes
from maniple.store.postgres.evidence import PostgresEvidence
from maniple.store.postgres.migrations import load_migrations, require_usable
from maniple.store.postgres.processes import registered
from maniple.store.postgres.run_tables import (
    PostgresArtifacts,
    PostgresEvents,
    PostgresInputs,
    PostgresLedger,
)
from maniple.store.postgres.search import PostgresRunTexts
from maniple.store.postgres.shared_folder import (
    OTHERS,
    SharedFolder,
    describe_differences,
    describe_strangers,
    marked,
    warn_of_others,
)
from maniple.store.postgres.tables import PostgresKeys, PostgresRuns, PostgresThreads
from maniple.store.schedules import SqlSchedules
from maniple.store.statements import PercentStatements
from maniple.store.webhooks import SqlWebhooks

POOL_SIZE = 8
WORKER_SECONDS = 30.0
"""A worker beats every ten seconds, and was killed if it has not for so long."""
_HAS_WORKER = (
    "SELECT EXISTS (SELECT FROM procrastinate_workers "
    "WHERE last_heartbeat > clock_timestamp() - make_interval(secs => %s))"
)
_NO_WORKER = "No worker is there, and runs wait for one. Start it: maniple work."
_UNCHECKED = (
    "SELECT conrelid::regclass::text, conname FROM pg_constraint "
    "WHERE NOT convalidated AND connamespace = 'maniple'::regnamespace"
)
_DISABLED_FENCES = (
    "SELECT tgrelid::regclass::text FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid "
    "WHERE relnamespace = 'maniple'::regnamespace AND tgname = 'fence' AND tgenabled = 'D'"
)


class PostgresStore:
    """See `protocols.Store`. `database` is for what works on the same tables in the same transactions."""

    def __init__(
        self, database: PostgresDatabase, contents: ArtifactContents, shared: SharedFolder | None
    ) -> None:
        self.database = database
        self._shared = shared
        self._contents = contents
        self.threads = PostgresThreads(database, contents)
        self.runs = PostgresRuns(database)
        self.texts = PostgresRunTexts(database)
        self.inputs = PostgresInputs(database)
        self.events = PostgresEvents(database)
        self.ledger = PostgresLedger(database)
        self.artifacts = PostgresArtifacts(database, contents)
        self.keys = PostgresKeys(database)
        self.schedules = SqlSchedules(PercentStatements(database))
        self.webhooks = SqlWebhooks(PercentStatements(database))
        self.batches = SqlBatches(PercentStatements(database))
        self.checkpoints = PostgresCheckpointHistory(database)
        self.checkpointer: BaseCheckpointSaver[Any] = PostgresSaver(database)

    @property
    def process(self) -> str:
        return self.database.process

    def evidence(self, run_id: str) -> Evidence:
        return PostgresEvidence(self.database, run_id)

    async def probe(self) -> str:
        await self.database.probe()
        ((has_worker,),) = await self.database.fetch(_HAS_WORKER, (WORKER_SECONDS,))
        warnings = ["" if has_worker else _NO_WORKER, *await self._describe_others()]
        return " ".join(filter(None, warnings))

    async def _describe_others(self) -> list[str]:
        if self._shared is None:
            return []
        others = await self.database.fetch(OTHERS, (self.process,))
        describe = (describe_strangers, describe_differences)
        return [await asyncio.to_thread(one, others, self._shared) for one in describe]

    async def check(self) -> list[str]:
        try:
            unchecked = await self.database.fetch(_UNCHECKED)
            fences = await self.database.fetch(_DISABLED_FENCES)
            rows = await self.database.fetch("SELECT artifact_id, size FROM artifacts")
        except StoreError as error:
            return [str(error)]
        missing = await self._contents.missing((name, size) for name, size in rows)
        return [
            *(f"The rows of {table} were never checked against {name}." for table, name in unchecked),
            *(f"The fence of {table} is disabled." for (table,) in fences),
            *(f"The content of artifact {name} is missing or was changed." for name in missing),
        ]

    async def vacuum(self) -> None:
        await self.database.vacuum()
        rows = await self.database.fetch("SELECT artifact_id FROM artifacts")
        await self._contents.sweep({name for (name,) in rows})


@asynccontextmanager
async def open_postgres(
    url: str,
    contents: ArtifactContents,
    *,
    server: bool,
    pool: int = POOL_SIZE,
    times: ProcessTimes | None = None,
    shared: SharedFolder | None = None,
) -> AsyncGenerator[PostgresStore]:
    """Open the store in the database of `url`, with `pool` connections.

    Other processes with another folder or other settings than `shared` are named in the log, and by `probe`.

    Raises a `StoreError` for a database that cannot be used, or of another schema version, which stays as it
    is.
    """
    await require_usable(url, len(load_migrations()))
    database = PostgresDatabase(url, str(uuid4()), pool, times or ProcessTimes())
    async with AsyncExitStack() as stack:
        await database.open()
        stack.push_async_callback(_close, database)
        if shared is not None:
            await stack.enter_async_context(marked(shared, database.process))
        await stack.enter_async_context(registered(database, server=server))
        if shared is not None:
            await warn_of_others(database, shared)
        yield PostgresStore(database, contents, shared)


async def _close(database: PostgresDatabase) -> None:
    await run_to_completion(database.close())
