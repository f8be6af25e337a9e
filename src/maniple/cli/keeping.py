"""The store as the commands open it that do nothing else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from maniple.config import Settings
from maniple.errors import ConfigError
from maniple.store import Store, valid_keys
from maniple.store.configured import database_of, open_configured_store


def database_file(settings: Settings) -> Path:
    """Return where the database lies, or is to lie; raises `ConfigError` when nothing is kept."""
    file = database_of(settings)
    if file is None:
        raise ConfigError("Nothing is kept: store.backend is memory. Set it to sqlite.")
    return file


@asynccontextmanager
async def open_kept(settings: Settings) -> AsyncIterator[Store]:
    """Open the database beside whoever has it open; raises `ConfigError` or `StoreError`."""
    database_file(settings)
    async with open_configured_store(settings, server=False) as store:
        yield store


async def has_valid_key(settings: Settings) -> bool:
    """Say whether somebody has an API key that was not revoked."""
    file = database_of(settings)
    if file is None or not file.exists():
        return False
    async with open_kept(settings) as store:
        return await valid_keys(store.keys) > 0
