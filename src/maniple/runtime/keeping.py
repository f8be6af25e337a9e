"""Where this program keeps threads and runs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from maniple.config import Settings
from maniple.config.secrets import secrets_of
from maniple.redaction import Redactor
from maniple.store import Store, open_store
from maniple.store.redacting_serde import RedactingSerializer

DATABASE = "maniple.db"
ARTIFACTS = "artifacts"


@asynccontextmanager
async def open_configured_store(settings: Settings, *, server: bool) -> AsyncIterator[Store]:
    """Open the store that `settings` name, for everything but their secrets.

    Raises `StoreError` with what to do.
    """
    path = settings.store.path or settings.data_dir / DATABASE
    kept = path if settings.store.backend == "sqlite" else None
    async with open_store(kept, settings.data_dir / ARTIFACTS, server=server) as store:
        store.checkpointer.serde = RedactingSerializer(Redactor(secrets_of(settings)))
        yield store
