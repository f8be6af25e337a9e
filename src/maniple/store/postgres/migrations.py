"""The versions of the schema, and how a database is brought to the newest one."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from importlib import resources

import psycopg
from psycopg import AsyncConnection

from maniple.errors import StoreError
from maniple.store.postgres.database import (
    CONNECT_SECONDS,
    PROCESS_VARIABLE,
    SCHEMA,
    configure,
    fetch_all,
    name_database,
)
from maniple.store.postgres.errors import from_postgres_error

_LOCK = 0x4D4E504C
"""The advisory lock of whoever migrates."""
_VERSIONS = f"{SCHEMA}.schema_versions"


def load_migrations() -> list[str]:
    """Return the SQL of every schema version: script N turns version N - 1 into version N."""
    folder = resources.files("maniple.store.postgres") / "schema"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(folder / name).read_text(encoding="utf-8") for name in names]


async def migrate(url: str, versions: Sequence[str]) -> tuple[int, int]:
    """Bring a database to the newest of `versions`; return its version before and after.

    One process at a time migrates; each version is one transaction. Raises `StoreError`, also for a database
    of a newer maniple.
    """
    async with connected(url) as connection:
        await connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))  # closing the connection frees it
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}".encode())
        await connection.execute(
            f"CREATE TABLE IF NOT EXISTS {_VERSIONS} (version integer PRIMARY KEY, "
            "applied_at timestamptz NOT NULL DEFAULT clock_timestamp())".encode()
        )
        before = await _read_version(connection)
        _refuse_newer(before, len(versions), name_database(url))
        for number in range(before + 1, len(versions) + 1):
            async with connection.transaction():
                await connection.execute(versions[number - 1].encode())
                await connection.execute(f"INSERT INTO {_VERSIONS} (version) VALUES (%s)".encode(), (number,))
        return before, max(before, len(versions))


async def require_usable(url: str, newest: int) -> None:
    """Raise `StoreError` unless a database has schema version `newest` and gives each client its session."""
    await require_version(url, newest)
    async with connected(url) as first, connected(url) as second:
        if await share_a_session(first, second):
            raise StoreError(
                "store.url leads to a pooler that gives one session to several clients, as PgBouncer does "
                "with pool_mode = transaction: the store could not tell processes apart. Set pool_mode = "
                "session, or name the server itself."
            )


async def share_a_session(first: AsyncConnection, second: AsyncConnection) -> bool:
    """Return whether a variable that one of two connections sets is seen by the other one."""
    for connection, name in ((first, "first"), (second, "second")):
        await connection.execute("SELECT set_config(%s, %s, false)", (PROCESS_VARIABLE, name))
    ((found,),) = await fetch_all(first, "SELECT current_setting(%s, true)", (PROCESS_VARIABLE,))
    return found != "first"


async def require_version(url: str, newest: int) -> None:
    """Raise `StoreError` unless a database has schema version `newest`."""
    name = name_database(url)
    async with connected(url) as connection:
        rows = await fetch_all(connection, "SELECT to_regclass(%s) IS NOT NULL", (_VERSIONS,))
        version = await _read_version(connection) if rows[0][0] else 0
    _refuse_newer(version, newest, name)
    if version < newest:
        stands = "holds no tables of maniple" if version == 0 else f"has schema {version}"
        raise StoreError(f"{name} {stands}; this version needs schema {newest}. Run: maniple db migrate")


def _refuse_newer(version: int, newest: int, name: str) -> None:
    if version > newest:
        raise StoreError(
            f"A newer maniple migrated {name} (schema {version}; this version knows {newest}). "
            "Update maniple, or set store.url to another database."
        )


async def _read_version(connection: AsyncConnection) -> int:
    ((version,),) = await fetch_all(connection, f"SELECT coalesce(max(version), 0) FROM {_VERSIONS}")
    return version


@asynccontextmanager
async def connected(url: str) -> AsyncGenerator[AsyncConnection]:
    """Connect to a database, whatever its schema, as no process that drives runs. Raises `StoreError`."""
    try:
        async with await AsyncConnection.connect(url, connect_timeout=CONNECT_SECONDS) as connection:
            await configure(connection, "")
            yield connection
    except psycopg.Error as error:
        raise from_postgres_error(error, name_database(url)) from error
