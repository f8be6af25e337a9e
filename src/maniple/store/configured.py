"""Opens stores: the one that the settings name, one in a given file, or a temporary one."""

import asyncio
import fcntl
import logging
import os
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, get_args

from maniple.config import Settings
from maniple.config.digests import digest_sections
from maniple.config.secrets import redactor_of
from maniple.errors import StoreBusy, StoreInUse, StoreReadOnly, StoreUnreachable, Unavailable
from maniple.installation import installing
from maniple.store.artifact_contents import ArtifactContents
from maniple.store.protocols import Store
from maniple.store.records import RunRecord
from maniple.store.redaction import RedactingSerializer

DATABASE = "maniple.db"
StorageFolder = Literal["artifacts", "workspaces", "browser", "folder-index"]
"""The folders that belong to a database."""
ARTIFACTS: Final = "artifacts"
STARTING_SECONDS = 60.0
"""How long a server that starts waits for its database."""
STARTING_PAUSE_SECONDS = 0.5
TEMPORARY_PREFIX = "maniple-store-"
_STALE_SECONDS = 600.0
"""A younger folder may belong to a process that has not locked it yet."""

_LOG = logging.getLogger(__name__)


def database_path(settings: Settings) -> Path | None:
    """Return the path of the SQLite database; None when it is temporary, or in PostgreSQL."""
    if settings.store.backend != "sqlite":
        return None
    return settings.store.path or settings.data_dir / DATABASE


def storage_folder(settings: Settings, name: StorageFolder) -> Path:
    """Return the folder `name` of the database: in `data_dir`, or beside `store.path`. Blocks on disk."""
    shared = settings.data_dir / name
    database = database_path(settings)
    if database is None or database.resolve() == (settings.data_dir / DATABASE).resolve():
        return shared
    own = database.resolve()
    return own.with_name(f"{own.name}.{name}")


@asynccontextmanager
async def open_configured_store(settings: Settings, *, server: bool) -> AsyncGenerator[Store]:
    """Open the store that `settings` name. It stores no secrets of theirs. Raises `StoreError`."""
    async with await asyncio.to_thread(_choose_store, settings, server=server) as store:
        store.checkpointer.serde = RedactingSerializer(redactor_of(settings))
        yield store


@asynccontextmanager
async def open_configured_store_patiently(settings: Settings, *, server: bool) -> AsyncGenerator[Store]:
    """Open the store that `settings` name, as soon as its server answers or its file is unlocked.

    For a program that starts beside its database. Raises `StoreError`, at the latest after
    `STARTING_SECONDS`.
    """
    async with AsyncExitStack() as stack:
        yield await _enter_patiently(stack, settings, server=server)


async def _enter_patiently(stack: AsyncExitStack, settings: Settings, *, server: bool) -> Store:
    deadline, is_told = time.monotonic() + STARTING_SECONDS, False
    while True:
        try:
            return await stack.enter_async_context(open_configured_store(settings, server=server))
        except (StoreBusy, StoreUnreachable) as error:
            if isinstance(error, StoreInUse) or time.monotonic() >= deadline:
                raise
            if not is_told:
                _LOG.warning("Waiting for the store, for %g s at most: %s", STARTING_SECONDS, error)
                is_told = True
        await asyncio.sleep(STARTING_PAUSE_SECONDS)


def _choose_store(settings: Settings, *, server: bool) -> AbstractAsyncContextManager[Store]:
    """Return the store that `store.backend` names, not yet open. Blocks on disk."""
    if settings.store.backend == "memory":
        return open_temporary_store()
    contents = artifact_contents(settings)
    if settings.store.backend == "postgres":
        return _postgres_store(settings, contents, server=server)
    from maniple.store.sqlite.store import open_sqlite

    return open_sqlite(settings.store.path or settings.data_dir / DATABASE, contents, server=server)


def _postgres_store(
    settings: Settings, contents: ArtifactContents, *, server: bool
) -> AbstractAsyncContextManager[Store]:
    require_postgres_driver()
    from maniple.store.postgres.database import ProcessTimes
    from maniple.store.postgres.shared_folder import SharedFolder
    from maniple.store.postgres.store import open_postgres

    given = settings.store
    return open_postgres(
        given.database_url,
        contents,
        server=server,
        pool=given.pool,
        times=ProcessTimes(settings.runs.lease_seconds, settings.runs.outage_seconds),
        shared=SharedFolder(settings.data_dir, digest_sections(settings)),
    )


def artifact_contents(settings: Settings) -> ArtifactContents:
    """Return what holds the contents of artifacts: what `artifacts.url` names, else the database's folder.

    Blocks on disk. Raises `Unavailable` for a bucket without the packages of the extra `s3`.
    """
    if settings.artifacts.is_in_bucket:
        if find_spec("obstore") is None:
            raise Unavailable("artifacts.url names a bucket, and obstore is not installed.", installing("s3"))
        from maniple.store.artifact_objects import ArtifactObjects

        return ArtifactObjects(settings.artifacts)
    from maniple.store.artifact_files import ArtifactFiles

    return ArtifactFiles(settings.artifacts.folder or storage_folder(settings, ARTIFACTS))


async def migrate_postgres(settings: Settings) -> tuple[int, int]:
    """Bring the PostgreSQL database to the newest schema; return its version before and after.

    Raises `StoreError`, also for a database that a newer maniple has migrated.
    """
    require_postgres_driver()
    from maniple.store.postgres.migrations import load_migrations, migrate

    return await migrate(settings.store.database_url, load_migrations())


async def move_to_postgres(
    file: Path, url: str, report: Callable[[str, int, int], None]
) -> Mapping[str, int]:
    """Copy the SQLite database `file` into the PostgreSQL database `url`; return the rows of each table.

    The contents of artifacts stay where they are. `report` is given a table, how many of its rows are read,
    and of how many. Raises `Unavailable`, `StoreInUse` while another program has the file open, and a
    `StoreError` also for a database that is not empty; then nothing was copied.
    """
    require_postgres_driver()
    from maniple.store.artifact_files import ArtifactFiles
    from maniple.store.postgres.transfer import transfer
    from maniple.store.sqlite.store import open_sqlite

    file = await asyncio.to_thread(file.resolve)
    async with open_sqlite(file, ArtifactFiles(file.parent), server=True) as store:
        return await transfer(file, store.process, url, report)


async def move_to_sqlite(
    url: str, file: Path, report: Callable[[str, int, int], None], copy_beside: Callable[[], None]
) -> Mapping[str, int]:
    """Copy the PostgreSQL database `url` into the new SQLite file `file`; return the rows of each table.

    The contents of artifacts stay where they are. Takes a `report` and raises as `move_to_postgres` does.
    `copy_beside` copies, in a thread, what is not in tables; the file appears when all is copied.
    """
    require_postgres_driver()
    from maniple.store.postgres.transfer_back import transfer_back

    return await transfer_back(url, await asyncio.to_thread(file.resolve), report, copy_beside)


async def require_postgres(settings: Settings) -> None:
    """Raise `Unavailable` or `StoreError` unless the PostgreSQL database of the settings can be used."""
    require_postgres_driver()
    from maniple.store.postgres.migrations import load_migrations, require_usable

    await require_usable(settings.store.database_url, len(load_migrations()))


async def describe_others(settings: Settings) -> tuple[str, str]:
    """Return which processes on the PostgreSQL database have another `data_dir`, and which other settings.

    Each is "" if there are none. Raises `StoreError`.
    """
    from maniple.store.postgres.database import fetch_all
    from maniple.store.postgres.migrations import connected
    from maniple.store.postgres.shared_folder import (
        OTHERS,
        SharedFolder,
        describe_differences,
        describe_strangers,
    )

    async with connected(settings.store.database_url) as connection:
        others = await fetch_all(connection, OTHERS, ("",))
    shared = SharedFolder(settings.data_dir, digest_sections(settings))
    strangers = await asyncio.to_thread(describe_strangers, others, shared)
    return strangers, await asyncio.to_thread(describe_differences, others, shared)


async def list_stuck_runs(store: Store, seconds: float) -> Sequence[RunRecord]:
    """Return the runs of a store in PostgreSQL that nobody drives, or that have waited for so long."""
    from maniple.store.postgres.queue import RunQueue
    from maniple.store.postgres.store import PostgresStore

    return await RunQueue(store.database).list_stuck(seconds) if isinstance(store, PostgresStore) else []


def describe_database(settings: Settings) -> str:
    """Return the database of the settings for messages, without its password."""
    if settings.store.backend != "postgres":
        return str(database_path(settings) or "a temporary database")
    return describe_postgres(settings.store.database_url)


def describe_postgres(url: str) -> str:
    """Return the PostgreSQL database of a URL for messages, without its password."""
    require_postgres_driver()
    from maniple.store.postgres.database import name_database

    return name_database(url)


def list_moved_folders(settings: Settings, file: Path | None) -> list[tuple[Path, Path]]:
    """Return the folders of the database of `settings` that have another place after a move.

    It moves to the SQLite file `file`, or for None to PostgreSQL. Blocks on disk.
    """
    kind = {"backend": "sqlite", "path": file} if file is not None else {"backend": "postgres"}
    after = settings.model_copy(update={"store": settings.store.model_copy(update=kind)})
    names = get_args(StorageFolder)
    places = [(storage_folder(settings, name), storage_folder(after, name)) for name in names]
    return [(before, now) for before, now in places if before != now and before.is_dir()]


def require_postgres_driver() -> None:
    """Raise `Unavailable` unless the packages of the extra `postgres` are installed."""
    packages = ("psycopg", "psycopg_pool", "langgraph.checkpoint.postgres", "cryptography")
    if missing := [name for name in packages if find_spec(name) is None]:
        raise Unavailable(
            f"store.backend is postgres, and {missing[0]} is not installed.",
            "pip install 'maniple[postgres]'",
        )


def open_store(path: Path, artifacts: Path, *, server: bool) -> AbstractAsyncContextManager[Store]:
    """Open the store in the SQLite file `path`, with the contents of its artifacts in the folder `artifacts`.

    Only one server may have a file open; other processes (`server=False`) may open it at the same time.
    Raises `StoreError`.
    """
    from maniple.store.artifact_files import ArtifactFiles
    from maniple.store.sqlite.store import open_sqlite

    return open_sqlite(path, ArtifactFiles(artifacts), server=server)


@asynccontextmanager
async def open_temporary_store(parent: Path | None = None) -> AsyncGenerator[Store]:
    """Open an empty store below `parent` (default: the system's temporary folder); closing deletes it.

    A killed process cannot delete its store: the next call does. Raises `StoreError`.
    """
    folder, lock = await asyncio.to_thread(_make_temporary_folder, parent or Path(tempfile.gettempdir()))
    try:
        async with open_store(folder / DATABASE, folder / ARTIFACTS, server=True) as store:
            yield store
    finally:
        os.close(lock)
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _make_temporary_folder(parent: Path) -> tuple[Path, int]:
    """Return a new folder and the descriptor of its lock, which the kernel releases when the process ends."""
    _delete_stale_folders(parent)
    try:
        folder = Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX, dir=parent))
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise StoreReadOnly(
            f"{parent} cannot be written ({error.strerror}). Set TMPDIR to a folder that can be written."
        ) from error
    fcntl.flock(lock, fcntl.LOCK_EX)  # systemd-tmpfiles leaves a locked folder alone, too
    return folder, lock


def _delete_stale_folders(parent: Path) -> None:
    for folder in parent.glob(f"{TEMPORARY_PREFIX}*"):
        with suppress(OSError):  # another user's, locked by a living process, or deleted meanwhile
            found = folder.lstat()
            if found.st_uid != os.geteuid() or time.time() - found.st_mtime < _STALE_SECONDS:
                continue
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
