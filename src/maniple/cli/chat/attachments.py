"""Files of a conversation: attachments, saved reports, and pages of runs."""

import asyncio
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from maniple.cli.text import file_size, one_line
from maniple.errors import FileError
from maniple.sandbox import StoredUpload, WorkspaceListing, Workspaces

if TYPE_CHECKING:
    pass

_SHOWN_FILES = 20


class Belongings:
    """What is in the workspaces of a session's threads."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces
        self._told: dict[str, set[tuple[str, int]]] = {}
        self._asked: set[str] = set()

    def expect(self, thread_id: str) -> None:
        """A run on this thread begins, or the thread is known."""
        self._told.setdefault(thread_id, set())
        self._asked.add(thread_id)

    async def give(self, thread_id: str, path: Path) -> StoredUpload:
        """Copy a file of the person's into the workspace, replacing one of its name; raises `FileError`."""
        stored = await asyncio.to_thread(self._give, thread_id, path)
        self._told.setdefault(thread_id, set()).add((stored.upload.path, stored.upload.size))
        return stored

    async def all(self, thread_id: str) -> list[str]:
        """Return lines for the files of a thread; none for none."""
        files = await asyncio.to_thread(self._workspaces.files, thread_id, _SHOWN_FILES + 1)
        return list(_file_lines(files)) if files.found else []

    async def news(self, thread_id: str) -> list[str]:
        """Return lines for the files that are new, or of another size, since this was asked last."""
        files = await asyncio.to_thread(self._workspaces.files, thread_id, _SHOWN_FILES + 1)
        told = self._told.setdefault(thread_id, set())
        fresh = [file for file in files.found if file not in told]
        told.update(fresh)
        return list(_file_lines(WorkspaceListing(files.folder, tuple(fresh)))) if fresh else []

    def discard_unused(self) -> None:
        """Remove the workspaces in which nothing is, or only what nothing was asked about. Blocks on disk."""
        for thread_id in self._told:
            if thread_id in self._asked:
                self._workspaces.discard_if_empty(thread_id)
            else:
                with suppress(FileError):
                    self._workspaces.remove(thread_id)

    def _give(self, thread_id: str, path: Path) -> StoredUpload:
        with _open_attachment(path) as source:
            self._workspaces.open(thread_id)
            [stored] = self._workspaces.uploads(thread_id).add([(path.name, source)])
            return stored


@asynccontextmanager
async def open_belongings(workspaces: Workspaces) -> AsyncIterator[Belongings]:
    """Yield the belongings; afterwards no workspace of theirs is there that is empty or was never used."""
    belongings = Belongings(workspaces)
    try:
        yield belongings
    finally:
        # Not in a thread: nothing may be awaited while the program is being cancelled.
        belongings.discard_unused()


def _open_attachment(path: Path) -> BinaryIO:
    """Open an ordinary file; raises `FileError` for any other thing."""
    try:
        file = path.expanduser()
        kind = file.stat().st_mode
        if stat.S_ISDIR(kind):
            raise FileError(f"{path} is a directory: give the files in it, or an archive of it.")
        if not stat.S_ISREG(kind):
            raise FileError(f"{path} is no ordinary file, so it is not copied.")
        return file.open("rb")
    except FileNotFoundError:
        raise FileError(f"There is no file {path}.") from None
    except (OSError, RuntimeError, ValueError) as error:
        # RuntimeError: nobody's home for a `~name`; ValueError: a NUL in the name.
        raise FileError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def _file_lines(files: WorkspaceListing) -> Iterator[str]:
    yield f"Files in {files.folder}:"
    for path, size in files.found[:_SHOWN_FILES]:
        yield f"  {one_line(path)}  {file_size(size)}"
    if len(files.found) > _SHOWN_FILES:
        yield "  … and more"
