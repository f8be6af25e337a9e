"""Where this program keeps threads and runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from maniple.config import Settings
from maniple.config.secrets import redactor_of
from maniple.store.open import open_store, open_temporary_store
from maniple.store.protocols import Store
from maniple.store.redacting_serde import RedactingSerializer

DATABASE = "maniple.db"
ARTIFACTS = "artifacts"


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that belongs to one database; in `earlier`, others of the same `data_dir` have files, too."""

    folder: Path
    earlier: Path | None = None


def database_of(settings: Settings) -> Path | None:
    """Return where the database lies, or is to lie; None when nothing is kept."""
    if settings.store.backend != "sqlite":
        return None
    return settings.store.path or settings.data_dir / DATABASE


def place_of(settings: Settings, name: str) -> Place:
    """Return where the files of the database lie: in `data_dir`, or beside `store.path`. Blocks on disk."""
    shared = settings.data_dir / name
    database = database_of(settings)
    if database is None or database.resolve() == (settings.data_dir / DATABASE).resolve():
        return Place(shared)
    own = database.resolve()
    return Place(own.with_name(f"{own.name}.{name}"), shared)


@asynccontextmanager
async def open_configured_store(settings: Settings, *, server: bool) -> AsyncIterator[Store]:
    """Open the store that `settings` name, for everything but their secrets.

    Raises `StoreError` with what to do.
    """
    database = database_of(settings)
    if database is None:
        opened = open_temporary_store()
    else:
        place = await asyncio.to_thread(place_of, settings, ARTIFACTS)
        opened = open_store(database, place.folder, server=server, earlier=place.earlier)
    async with opened as store:
        store.checkpointer.serde = RedactingSerializer(redactor_of(settings))
        yield store
