"""What the processes of an installation share beside threads and runs: files here, or rows in PostgreSQL."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from maniple.config import Settings
from maniple.errors import ConfigError, StoreError
from maniple.shared_texts import CAPABILITIES, SharedTexts, TextFolder
from maniple.store.configured import require_postgres_driver

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SharedState:
    """The texts of each kind."""

    logins: SharedTexts
    """The tokens of a user's logins at MCP servers, by server. In PostgreSQL they are encrypted."""
    accepted_tools: SharedTexts
    """The accepted tools of MCP servers, by server."""
    endpoints: SharedTexts
    """What calls have shown of model endpoints, in the text `CAPABILITIES`."""

    def copy_to(self, other: "SharedState", *, replace: bool = False) -> None:
        """Copy the texts that `other` lacks, or with `replace` all. Blocks.

        Raises `StoreError`, or `ConfigError` for logins without a key. Logins are last: where accepted tools
        are missing, changed ones would be accepted as new.
        """
        for name in self.accepted_tools.names():
            _copy(self.accepted_tools, other.accepted_tools, name, replace=replace)
        _copy(self.endpoints, other.endpoints, CAPABILITIES, replace=replace)
        for name in self.logins.names():
            _copy(self.logins, other.logins, name, replace=replace)


@contextmanager
def open_shared_state(settings: Settings) -> Generator[SharedState]:
    """Open what `settings` say is shared; calls connect to PostgreSQL when they need it.

    Raises `Unavailable` without the packages for PostgreSQL. Blocks on disk.
    """
    files = state_files(settings)
    if settings.store.backend != "postgres":
        yield files
        return
    with open_state_rows(settings) as rows:
        _take_over(files, rows)
        yield rows


@asynccontextmanager
async def open_state(settings: Settings) -> AsyncGenerator[SharedState]:
    """Open what `settings` say is shared, as `open_shared_state`, without blocking the event loop."""
    opening = open_shared_state(settings)
    state = await asyncio.to_thread(opening.__enter__)
    try:
        yield state
    finally:
        await asyncio.to_thread(opening.__exit__, None, None, None)


def state_files(settings: Settings) -> SharedState:
    """Return the shared state in the files of the settings' folders."""
    folder = settings.data_dir / "mcp"
    return SharedState(
        TextFolder(folder / "logins"), TextFolder(folder / "accepted"), TextFolder(settings.cache_dir)
    )


@contextmanager
def open_state_rows(settings: Settings, url: str = "") -> Generator[SharedState]:
    """Open the shared state in the database of `url`, by default `store.url`. Raises `Unavailable`."""
    require_postgres_driver()
    from maniple.store.postgres.shared_texts import BlockingConnection, EncryptedTexts, TextRows

    connection = BlockingConnection(url or settings.store.database_url)
    try:
        yield SharedState(
            EncryptedTexts(TextRows(connection, "login"), settings.secret_keys),
            TextRows(connection, "accepted_tools"),
            TextRows(connection, "endpoints"),
        )
    finally:
        connection.close()


def _take_over(files: SharedState, rows: SharedState) -> None:
    """Make rows of the files of an earlier version, and delete those that hold tokens.

    What cannot be read or written now is tried again at the next start.
    """
    try:
        files.copy_to(rows)
        for name in files.logins.names():
            files.logins.delete(name)
    except (ConfigError, StoreError) as error:
        _LOG.warning("Files of an earlier version are not in the database yet: %s", error)


def _copy(source: SharedTexts, target: SharedTexts, name: str, *, replace: bool) -> None:
    text = source.read(name)
    if text is None or not (replace or target.read(name) is None):
        return
    with target.locked(name):
        if replace or target.read(name) is None:
            target.write(name, text)
