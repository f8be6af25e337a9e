"""The files of a conversation: those that the user attaches, and those that runs write."""

import asyncio
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from maniple.cli.text import file_size, one_line
from maniple.errors import FileError
from maniple.sandbox import StoredUpload, WorkspaceListing, Workspaces

_LISTED_FILES = 20


class Attachments:
    """The files in the workspaces of a session's threads."""

    def __init__(self, workspaces: Workspaces) -> None:
        self.workspaces = workspaces
        self._listed: dict[str, set[tuple[str, int]]] = {}
        self._used: set[str] = set()

    def track(self, thread_id: str) -> None:
        """Note that the thread has a run, so that its workspace is not removed with its files."""
        self._listed.setdefault(thread_id, set())
        self._used.add(thread_id)

    async def add(self, thread_id: str, path: Path) -> StoredUpload:
        """Copy a file of the user into the workspace, replacing one of the same name; raises `FileError`."""
        stored = await asyncio.to_thread(self._copy, thread_id, path)
        self._listed.setdefault(thread_id, set()).add((stored.upload.path, stored.upload.size))
        return stored

    async def all_files(self, thread_id: str) -> list[str]:
        """Return lines that list the files of a thread; no line if there are none."""
        files = await asyncio.to_thread(self.workspaces.files, thread_id, _LISTED_FILES + 1)
        return list(_file_lines(files)) if files.found else []

    async def new_files(self, thread_id: str) -> list[str]:
        """Return lines that list the files that are new, or have another size, since the last call."""
        files = await asyncio.to_thread(self.workspaces.files, thread_id, _LISTED_FILES + 1)
        listed = self._listed.setdefault(thread_id, set())
        new = [file for file in files.found if file not in listed]
        listed.update(new)
        return list(_file_lines(WorkspaceListing(files.folder, tuple(new)))) if new else []

    def discard_unused(self) -> None:
        """Remove empty workspaces, and those whose thread never had a run. Blocks on disk."""
        for thread_id in self._listed:
            if thread_id in self._used:
                self.workspaces.discard_if_empty(thread_id)
            else:
                with suppress(FileError):
                    self.workspaces.remove(thread_id)

    def _copy(self, thread_id: str, path: Path) -> StoredUpload:
        with _open_regular_file(path) as source:
            self.workspaces.open(thread_id)
            [stored] = self.workspaces.uploads(thread_id).add([(path.name, source)])
            return stored


@asynccontextmanager
async def open_attachments(workspaces: Workspaces) -> AsyncIterator[Attachments]:
    """Yield the attachments; at the end remove the workspaces that are empty or were not used."""
    attachments = Attachments(workspaces)
    try:
        yield attachments
    finally:
        # Not in a thread: while the program is being cancelled, nothing can be awaited.
        attachments.discard_unused()


def _open_regular_file(path: Path) -> BinaryIO:
    """Open a regular file; raises `FileError` for anything else."""
    try:
        file = path.expanduser()
        mode = file.stat().st_mode
        if stat.S_ISDIR(mode):
            raise FileError(f"{path} is a directory. Attach its files one by one, or an archive of it.")
        if not stat.S_ISREG(mode):
            raise FileError(f"{path} is not a regular file and cannot be attached.")
        return file.open("rb")
    except FileNotFoundError:
        raise FileError(f"{path} does not exist.") from None
    except (OSError, RuntimeError, ValueError) as error:
        # RuntimeError: `~name` without such a user; ValueError: a NUL in the name.
        raise FileError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def _file_lines(files: WorkspaceListing) -> Iterator[str]:
    yield f"Files in {files.folder}:"
    for path, size in files.found[:_LISTED_FILES]:
        yield f"  {one_line(path)}  {file_size(size)}"
    if len(files.found) > _LISTED_FILES:
        yield "  … and more"
