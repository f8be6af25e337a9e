"""The page of a run as a file of the person's."""

import asyncio
import os
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from maniple.errors import FileError

if TYPE_CHECKING:
    from maniple.cli.session import Session


async def write_page(session: "Session") -> Path | None:
    """Write the page of the run that was followed last; return where, or None when there is none.

    Raises:
        FileError: it cannot be written.
        StoreError: the run cannot be read.
    """
    from maniple.run_page import page_of

    if not session.run_id:
        return None
    store = session.conversations.store
    run = await store.runs.get(session.run_id)
    if run is None:
        return None
    page = await page_of(store, run)
    return await asyncio.to_thread(_write, session.pages.absolute() / f"{run.run_id}.html", page)


async def open_page(path: Path) -> bool:
    """Open the page in the desktop's web browser; says whether there is one."""
    return await asyncio.to_thread(webbrowser.open, path.as_uri())


def _write(path: Path, page: str) -> Path:
    """Write what nobody else is to read: a page shows what the browser saw."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(path, "w", encoding="utf-8", opener=_privately) as file:
            file.write(page)
    except OSError as error:
        raise FileError(f"The run's page could not be written to {path}: {error.strerror}.") from error
    return path


def _privately(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, mode=0o600)
