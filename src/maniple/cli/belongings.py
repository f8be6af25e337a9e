"""The files that the team leaves behind: said where they are, and no empty folder kept."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from maniple.cli.words import file_size, one_line
from maniple.sandbox import Files, Workspaces

_SHOWN_FILES = 20


class Belongings:
    """What is in the workspaces of a session's threads."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces
        self._told: dict[str, set[tuple[str, int]]] = {}

    def expect(self, thread_id: str) -> None:
        """A run on this thread begins."""
        self._told.setdefault(thread_id, set())

    async def news(self, thread_id: str) -> list[str]:
        """Return lines for the files that are new, or of another size, since this was asked last."""
        files = await asyncio.to_thread(self._workspaces.files, thread_id, _SHOWN_FILES + 1)
        told = self._told.setdefault(thread_id, set())
        fresh = [file for file in files.found if file not in told]
        told.update(fresh)
        return list(_lines(Files(files.folder, tuple(fresh)))) if fresh else []

    def discard_empty(self) -> None:
        """Remove the workspaces in which nothing is. Blocks on disk."""
        for thread_id in self._told:
            self._workspaces.discard_if_empty(thread_id)


@asynccontextmanager
async def open_belongings(workspaces: Workspaces) -> AsyncIterator[Belongings]:
    """Yield the belongings; afterwards no workspace of theirs is there that is empty."""
    belongings = Belongings(workspaces)
    try:
        yield belongings
    finally:
        # Not in a thread: nothing may be awaited while the program is being cancelled.
        belongings.discard_empty()


def _lines(files: Files) -> Iterator[str]:
    yield f"Files in {files.folder}:"
    for path, size in files.found[:_SHOWN_FILES]:
        yield f"  {one_line(path)}  {file_size(size)}"
    if len(files.found) > _SHOWN_FILES:
        yield "  … and more"
