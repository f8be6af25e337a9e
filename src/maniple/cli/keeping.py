"""The store as the commands open it that do nothing else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from maniple.config import Settings
from maniple.errors import ConfigError
from maniple.runtime import open_configured_store
from maniple.runtime.keeping import DATABASE
from maniple.store import Store


def database_file(settings: Settings) -> Path:
    """Return where the database lies, or is to lie; raises `ConfigError` when nothing is kept."""
    if settings.store.backend != "sqlite":
        raise ConfigError("Nothing is kept: store.backend is memory. Set it to sqlite.")
    return settings.store.path or settings.data_dir / DATABASE


@asynccontextmanager
async def open_kept(settings: Settings) -> AsyncIterator[Store]:
    """Open the database beside whoever has it open; raises `ConfigError` or `StoreError`."""
    database_file(settings)
    async with open_configured_store(settings, server=False) as store:
        yield store


async def has_valid_key(settings: Settings) -> bool:
    """Say whether somebody has an API key that was not revoked."""
    if settings.store.backend != "sqlite" or not database_file(settings).exists():
        return False
    async with open_kept(settings) as store:
        return any(key.revoked_at is None for key in await store.keys.list())
