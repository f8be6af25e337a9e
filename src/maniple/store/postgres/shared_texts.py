"""The texts that all nodes share, as rows, which may be encrypted."""

import threading
from collections.abc import Generator, Hashable, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from maniple.errors import ConfigError, StoreError
from maniple.shared_texts import LOCK_SECONDS, SharedTexts
from maniple.store.postgres.database import CONNECT_SECONDS, SCHEMA, name_database
from maniple.store.postgres.errors import from_postgres_error, is_passing

_TABLE = f"{SCHEMA}.shared_texts"
_HOLDER_SECONDS = 60
"""A lock is taken from a process that has slept for so long, or whose machine has not answered."""
_SESSION = (
    f"SET lock_timeout = '{{seconds}}s'; SET idle_session_timeout = '{_HOLDER_SECONDS}s'; "
    "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"
)


class BlockingConnection:
    """One connection for short calls from any thread, opened by the first and again after it was lost."""

    def __init__(self, url: str) -> None:
        self.name = name_database(url)
        self._url = url
        self._mutex = threading.Lock()
        self._connection: psycopg.Connection | None = None
        self._is_open = True

    def fetch(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows; done twice, it must have the effect of once."""
        with self._mutex:
            try:
                return self._run(sql, values)
            except psycopg.Error as error:
                self._close()
                if not is_passing(error):
                    raise from_postgres_error(error, self.name) from error
            try:  # the server may have restarted since the last call
                return self._run(sql, values)
            except psycopg.Error as error:
                self._close()
                raise from_postgres_error(error, self.name) from error

    def open_beside(self) -> psycopg.Connection:
        """Return another connection, which the caller closes. Raises `psycopg.Error`."""
        return psycopg.connect(self._url, autocommit=True, connect_timeout=CONNECT_SECONDS)

    def close(self) -> None:
        """Close the connection; later calls raise `StoreError`."""
        with self._mutex:
            self._is_open = False
            self._close()

    def _run(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        if not self._is_open:
            raise StoreError("The shared state is closed. Nothing can be read or written.")
        if self._connection is None:
            self._connection = self.open_beside()
        cursor = self._connection.execute(sql.encode(), values)
        return cursor.fetchall() if cursor.description is not None else []

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class TextRows:
    """The texts of one kind as rows. See `SharedTexts`."""

    def __init__(self, connection: BlockingConnection, kind: str, lock_seconds: float = LOCK_SECONDS) -> None:
        self._connection = connection
        self._kind = kind
        self._lock_seconds = lock_seconds

    def read(self, name: str) -> str | None:
        rows = self._fetch("SELECT content", name)
        return rows[0][0] if rows else None

    def write(self, name: str, text: str) -> None:
        self._connection.fetch(
            f"INSERT INTO {_TABLE} (kind, name, content) VALUES (%s, %s, %s) "
            "ON CONFLICT (kind, name) DO UPDATE SET content = excluded.content, revision = DEFAULT",
            (self._kind, name, text),
        )

    def delete(self, name: str) -> None:
        sql = f"DELETE FROM {_TABLE} WHERE kind = %s AND name = %s"
        self._connection.fetch(sql, (self._kind, name))

    def stamp(self, name: str) -> Hashable:
        rows = self._fetch("SELECT revision", name)
        return rows[0][0] if rows else None

    def names(self) -> Sequence[str]:
        sql = f'SELECT name FROM {_TABLE} WHERE kind = %s ORDER BY name COLLATE "C"'
        return [name for (name,) in self._connection.fetch(sql, (self._kind,))]

    @contextmanager
    def locked(self, name: str) -> Generator[None]:
        # The lock belongs to the session: a process that dies, or is cut off, loses it.
        try:
            holder = self._connection.open_beside()
        except psycopg.Error as error:
            raise from_postgres_error(error, self._connection.name) from error
        try:
            self._take(holder, name)
            yield
        finally:
            with suppress(psycopg.Error):
                holder.close()

    def describe(self, name: str) -> str:
        return f"the row {self._kind}/{name} of {_TABLE} in {self._connection.name}"

    def _take(self, holder: psycopg.Connection, name: str) -> None:
        key = f"shared text {self._kind} {name}"
        try:
            holder.execute(_SESSION.format(seconds=max(self._lock_seconds, 0.01)).encode())
            holder.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (key,))
        except psycopg.Error as error:
            raise from_postgres_error(error, self._connection.name) from error

    def _fetch(self, select: str, name: str) -> list[tuple[Any, ...]]:
        sql = f"{select} FROM {_TABLE} WHERE kind = %s AND name = %s"
        return self._connection.fetch(sql, (self._kind, name))


class EncryptedTexts:
    """The same texts, encrypted with the first of `keys`; each of them decrypts. See `SharedTexts`.

    The form is Fernet's (https://github.com/fernet/spec): AES-128-CBC with an HMAC-SHA256. Without keys,
    reading and writing raise `ConfigError`.
    """

    def __init__(self, texts: SharedTexts, keys: Sequence[str]) -> None:
        self._texts = texts
        self._keys = [Fernet(key) for key in keys]
        self.names, self.delete, self.stamp = texts.names, texts.delete, texts.stamp
        self.locked, self.describe = texts.locked, texts.describe

    def read(self, name: str) -> str | None:
        text = self._texts.read(name)
        if text is None:
            return None
        try:
            return self._cipher().decrypt(text.encode()).decode()
        except InvalidToken as error:
            raise StoreError(
                f"{self.describe(name)} was encrypted with another key. Set MANIPLE_SECRET_KEY as on the "
                "other nodes, and the former key as MANIPLE_FORMER_SECRET_KEY."
            ) from error

    def write(self, name: str, text: str) -> None:
        self._texts.write(name, self._cipher().encrypt(text.encode()).decode())

    def _cipher(self) -> MultiFernet:
        if not self._keys:
            raise ConfigError(
                f"{self._texts.describe('*')} is stored encrypted. Set MANIPLE_SECRET_KEY, for all processes "
                "the same, to what `openssl rand -base64 32` prints."
            )
        return MultiFernet(self._keys)
