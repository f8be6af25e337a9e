"""Whether the processes that have a database open share one folder of files, as they must.

Each leaves a file with its id there, before the database knows it: a living process of which there is none
has another folder.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from maniple.errors import StoreReadOnly
from maniple.store.postgres.database import PostgresDatabase
from maniple.store.postgres.processes import RECENT

FOLDER = "processes"
STALE_SECONDS = 7 * 86_400.0
"""The age of a mark that belongs to a killed process: the database forgets those after a day."""
OTHERS = f"SELECT process, host, pid FROM processes WHERE process <> %s AND {RECENT} ORDER BY host, pid"
"""The living processes but one, as id, host and pid."""
_LOG = logging.getLogger(__name__)


@asynccontextmanager
async def marked(data_dir: Path, process: str) -> AsyncGenerator[None]:
    """Leave the mark of this process inside of the context. Raises `StoreReadOnly`."""
    mark = data_dir / FOLDER / process
    try:
        await asyncio.to_thread(_leave, mark)
    except OSError as error:
        raise StoreReadOnly(
            f"{mark.parent} cannot be written ({error.strerror}). Make data_dir a folder that can be written."
        ) from error
    try:
        yield
    finally:
        with suppress(OSError):
            await asyncio.to_thread(mark.unlink, missing_ok=True)


def _leave(mark: Path) -> None:
    mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mark.touch(mode=0o600)


def _delete_stale(folder: Path, alive: Collection[str]) -> None:
    for mark in folder.iterdir():
        with suppress(OSError):  # another process has deleted it
            if mark.name not in alive and time.time() - mark.stat().st_mtime > STALE_SECONDS:
                mark.unlink()


def describe_strangers(others: Sequence[tuple[Any, ...]], data_dir: Path) -> str:
    """Return which of the living processes (id, host, pid) do not share `data_dir`, and what to do, or "".

    Blocks on disk.
    """
    folder = data_dir / FOLDER
    marks = {one.name for one in folder.iterdir()} if folder.is_dir() else set[str]()
    strangers = [f"pid {pid} on {host}" for process, host, pid in others if process not in marks]
    if not strangers:
        return ""
    return (
        f"{data_dir} is not shared with {', '.join(strangers)}: a run that goes on elsewhere misses its "
        "files. Let data_dir be one shared folder for all processes."
    )


async def warn_of_strangers(database: PostgresDatabase, data_dir: Path) -> None:
    """Log which processes do not share `data_dir`: their runs have other files. Raises `StoreError`.

    Marks of processes that were killed long ago are deleted.
    """
    alive = {name for (name,) in await database.fetch("SELECT process FROM processes")}
    await asyncio.to_thread(_delete_stale, data_dir / FOLDER, alive)
    others = await database.fetch(OTHERS, (database.process,))
    if warning := await asyncio.to_thread(describe_strangers, others, data_dir):
        _LOG.warning("%s", warning)
