"""Where this program keeps threads and runs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from maniple.config import Settings
from maniple.config.secrets import redactor_of
from maniple.store.open import open_store
from maniple.store.protocols import Store
from maniple.store.redacting_serde import RedactingSerializer

DATABASE = "maniple.db"
ARTIFACTS = "artifacts"


def database_of(settings: Settings) -> Path | None:
    """Return where the database lies, or is to lie; None when nothing is kept."""
    if settings.store.backend != "sqlite":
        return None
    return settings.store.path or settings.data_dir / DATABASE


@asynccontextmanager
async def open_configured_store(settings: Settings, *, server: bool) -> AsyncIterator[Store]:
    """Open the store that `settings` name, for everything but their secrets.

    Raises `StoreError` with what to do.
    """
    async with open_store(database_of(settings), settings.data_dir / ARTIFACTS, server=server) as store:
        store.checkpointer.serde = RedactingSerializer(redactor_of(settings))
        yield store
