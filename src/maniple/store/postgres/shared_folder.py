"""Whether the processes that have a database open share one folder of files and one set of settings.

Each leaves a file with its id there, before the database knows it: a living process of which there is none
has another folder. The file has the digests of the sections of its settings.
"""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maniple.errors import StoreReadOnly
from maniple.store.postgres.database import PostgresDatabase
from maniple.store.postgres.processes import RECENT
from maniple.types import is_mapping

FOLDER = "processes"
STALE_SECONDS = 7 * 86_400.0
"""The age of a mark that belongs to a killed process: the database forgets those after a day."""
OTHERS = f"SELECT process, host, pid FROM processes WHERE process <> %s AND {RECENT} ORDER BY host, pid"
"""The living processes but one, as id, host and pid."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SharedFolder:
    """The folder `data_dir` of a process, and the digests of its settings by section."""

    data_dir: Path
    digests: Mapping[str, str]

    @property
    def marks(self) -> Path:
        """The folder of the marks."""
        return self.data_dir / FOLDER


@asynccontextmanager
async def marked(shared: SharedFolder, process: str) -> AsyncGenerator[None]:
    """Leave the mark of this process inside of the context. Raises `StoreReadOnly`."""
    mark = shared.marks / process
    try:
        await asyncio.to_thread(_leave, mark, shared.digests)
    except OSError as error:
        raise StoreReadOnly(
            f"{mark.parent} cannot be written ({error.strerror}). Make data_dir a folder that can be written."
        ) from error
    try:
        yield
    finally:
        with suppress(OSError):
            await asyncio.to_thread(mark.unlink, missing_ok=True)


def _leave(mark: Path, digests: Mapping[str, str]) -> None:
    mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mark.touch(mode=0o600)
    mark.write_text(json.dumps(dict(digests)), encoding="utf-8")


def _delete_stale(folder: Path, alive: Collection[str]) -> None:
    for mark in folder.iterdir():
        with suppress(OSError):  # another process has deleted it
            if mark.name not in alive and time.time() - mark.stat().st_mtime > STALE_SECONDS:
                mark.unlink()


def describe_strangers(others: Sequence[tuple[Any, ...]], shared: SharedFolder) -> str:
    """Return which of the living processes (id, host, pid) do not share `data_dir`, and what to do, or "".

    Blocks on disk.
    """
    marks = {one.name for one in shared.marks.iterdir()} if shared.marks.is_dir() else set[str]()
    strangers = [f"pid {pid} on {host}" for process, host, pid in others if process not in marks]
    if not strangers:
        return ""
    return (
        f"{shared.data_dir} is not shared with {', '.join(strangers)}: a run that goes on elsewhere misses "
        "its files. Let data_dir be one shared folder for all processes."
    )


def describe_differences(others: Sequence[tuple[Any, ...]], shared: SharedFolder) -> str:
    """Return which of the living processes (id, host, pid) have other settings, and what to do, or "".

    Blocks on disk.
    """
    found: list[str] = []
    for process, host, pid in others:
        theirs = _read_digests(shared.marks / process)
        names = sorted(one for one in theirs if theirs[one] != shared.digests.get(one, theirs[one]))
        if names:
            found.append(f"pid {pid} on {host} ({', '.join(names)})")
    if not found:
        return ""
    return (
        f"Other settings than here have {'; '.join(found)}: a run that goes on elsewhere works by those. "
        "Give all processes the same conf.yaml and environment."
    )


def _read_digests(mark: Path) -> Mapping[str, str]:
    """Return the digests of a process; none if it has another folder, or is of an earlier version."""
    try:
        digests: Any = json.loads(mark.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return digests if is_mapping(digests) else {}


async def warn_of_others(database: PostgresDatabase, shared: SharedFolder) -> None:
    """Log which processes have another folder, or other settings. Raises `StoreError`.

    Marks of processes that were killed long ago are deleted.
    """
    alive = {name for (name,) in await database.fetch("SELECT process FROM processes")}
    await asyncio.to_thread(_delete_stale, shared.marks, alive)
    others = await database.fetch(OTHERS, (database.process,))
    for describe in (describe_strangers, describe_differences):
        if warning := await asyncio.to_thread(describe, others, shared):
            _LOG.warning("%s", warning)
