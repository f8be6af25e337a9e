"""The files that the team made in a thread, for programs that embed the team."""

import asyncio
import hashlib
from contextlib import suppress
from dataclasses import dataclass

from maniple.errors import FileError
from maniple.media_types import media_type_of
from maniple.redaction import Redactor
from maniple.workspace import Workspace, Workspaces, is_cache
from maniple.workspace.mirrors import is_team_record

MAX_LISTED_FILES = 10_000


@dataclass(frozen=True, slots=True)
class TeamFile:
    """A file that the team made. `name` is its path in the workspace of the thread; `size` is in bytes."""

    name: str
    media_type: str
    size: int
    _workspace: Workspace
    _redactor: Redactor

    async def read(self) -> bytes:
        """Return the content as it is now, without the secrets of the settings.

        Links are not followed. Raises `FileError` if the file is gone.
        """
        return await asyncio.to_thread(self._read)

    def _read(self) -> bytes:
        with self._workspace.open(self.name) as file:
            return self._redactor.same_length(file.read())


@dataclass(frozen=True, slots=True)
class MadeFiles:
    """Lists what the team made in the workspace of a thread."""

    workspaces: Workspaces
    redactor: Redactor

    async def list(self, thread_id: str) -> list[TeamFile]:
        """Return the files by name: no unchanged uploads, caches, links, or records of the team's own."""
        return await asyncio.to_thread(self._list, thread_id)

    def _list(self, thread_id: str) -> "list[TeamFile]":
        workspace = self.workspaces.locate(thread_id)
        given = {one.path: one.sha256 for one in self.workspaces.uploads(thread_id).list_uploads()}
        return [
            TeamFile(path, media_type_of(path), size, workspace, self.redactor)
            for path, size in workspace.files(MAX_LISTED_FILES)
            if not (is_cache(path) or is_team_record(path))
            and (path not in given or _digest(workspace, path) != given[path])
        ]


def _digest(workspace: Workspace, path: str) -> str:
    with suppress(FileError), workspace.open(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # pyright: ignore[reportArgumentType]
    return ""
