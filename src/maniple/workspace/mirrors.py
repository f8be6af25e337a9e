"""The genuine text of sources, results and reports, in folders that code cannot write to.

They appear at their paths in the workspace: the methods of `Workspace` read them here, and a sandbox with
mounts shows these folders read-only over those of the workspace. What else the host writes there (an upload,
a file that a tool moved) is here, too. A backend without mounts gets copies of the mirrors, which code can
change and which the host never reads.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from maniple.errors import FileError
from maniple.workspace.account import give_away
from maniple.workspace.safe_open import open_directory, open_regular, replace_file

SOURCES = "sources"
RESULTS = "results"
REPORTS = "reports"
TOOL_RESULTS = "tool-results"
"""The folder of the full results of tools."""
MIRROR_FOLDERS = (SOURCES, RESULTS, REPORTS, TOOL_RESULTS)
MIRROR_PATH = re.compile(
    rf"{SOURCES}/(?P<number>\d+)(?:-table-(?P<table>\d+)\.csv|\.md)"
    rf"|{RESULTS}/(?:request-\d+/)?\d+-[a-z0-9_]+\.md|{REPORTS}/\d+\.md"
)
_TOOL_RESULT = re.compile(rf"{TOOL_RESULTS}/[^/]+")
_MODE = 0o444
_MAX_COPIED_BYTES = 20_000_000


class ReadOnlyMount(NamedTuple):
    """A folder of the host, and the name in the workspace over which it is mounted."""

    folder: Path
    name: str


def is_mirror(path: str) -> bool:
    """Return whether a workspace path is that of a source, result or report: no product of the team's own."""
    return MIRROR_PATH.fullmatch(path) is not None


def is_tool_result(path: str) -> bool:
    """Return whether a workspace path is that of a stored result of a tool."""
    return _TOOL_RESULT.fullmatch(path) is not None


def is_team_record(path: str) -> bool:
    """Return whether a workspace path is that of what the team stores for itself: no result of a run."""
    return is_mirror(path) or is_tool_result(path)


@dataclass(frozen=True, slots=True)
class Mirrors:
    """The mirrors of one thread, in `folder`. Every method blocks on disk.

    With `copies`, the workspace has copies for a backend without mounts.
    """

    folder: Path
    copies: bool = False

    def holds(self, parts: tuple[str, ...]) -> bool:
        """Return whether what has this path in the workspace is here, and nowhere else."""
        if not parts or parts[0] not in MIRROR_FOLDERS:
            return False
        return (
            is_team_record("/".join(parts)) and self.folder.is_dir() if self.copies else self._has(parts[0])
        )

    def _has(self, name: str) -> bool:
        return (self.folder / name).is_dir()

    def shows(self, parts: tuple[str, ...]) -> bool:
        """Return whether a folder of the workspace has something that is here."""
        if not parts or parts[0] not in MIRROR_FOLDERS:
            return False
        with (
            suppress(OSError),
            open_directory(self.folder, parts) as directory,
            os.scandir(directory) as found,
        ):
            return any(True for _ in found)
        return False

    def write(self, path: tuple[str, ...], content: bytes) -> None:
        """Write a mirror; raises `OSError`."""
        with open_directory(self.folder, path[:-1], make=True) as directory:
            replace_file(path[-1], directory, [content], _MODE)

    def adopt(self, workspace: Path) -> None:
        """Create the folders; called before code runs in the workspace. Raises `OSError`.

        What is in those of the workspace, as the mirrors of former versions are, is taken over.
        """
        if all(map(self._has, MIRROR_FOLDERS)):
            return
        self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.mkdir(mode=0o755, exist_ok=True)
        give_away(self.folder)
        for name in MIRROR_FOLDERS:
            if self._has(name):
                continue
            if self.copies:
                self._copy(workspace, name)
            elif _is_folder(workspace / name):
                # One step, so that a kill loses nothing. Another call may be faster.
                with suppress(FileNotFoundError, FileExistsError):
                    (workspace / name).rename(self.folder / name)
            with open_directory(self.folder, (name,), make=True):
                pass

    def _copy(self, workspace: Path, name: str) -> None:
        with suppress(OSError):
            for parts in list(_find_mirrors(workspace, (name,))):
                with (
                    suppress(FileError, OSError),
                    open_directory(workspace, parts[:-1]) as directory,
                    open_regular(parts[-1], directory) as descriptor,
                    os.fdopen(os.dup(descriptor), "rb") as file,
                ):
                    self.write(parts, file.read(_MAX_COPIED_BYTES))

    def mounts(self, workspace: Path) -> Iterator[ReadOnlyMount]:
        """Yield the folders to mount over those of the workspace. Raises `OSError`."""
        if not workspace.is_dir():
            return  # the sandbox gives the reason
        self.adopt(workspace)
        for name in MIRROR_FOLDERS:
            if (workspace / name).is_symlink():  # of a session without mounts
                (workspace / name).unlink()
            if not os.path.lexists(workspace / name):
                with open_directory(workspace, (name,), make=True):
                    pass
            if _is_folder(workspace / name):  # else a file of a former version
                yield ReadOnlyMount(self.folder / name, name)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _find_mirrors(workspace: Path, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    with open_directory(workspace, above) as directory, os.scandir(directory) as entries:
        for entry in entries:
            parts = (*above, entry.name)
            if entry.is_dir(follow_symlinks=False):
                if len(above) == 1:
                    yield from _find_mirrors(workspace, parts)
            elif is_team_record("/".join(parts)):
                yield parts
