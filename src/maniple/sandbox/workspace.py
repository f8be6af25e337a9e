"""One directory per thread, and the only way the host touches files in it."""

import errno
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from maniple.errors import FileError
from maniple.sandbox.account import give_away
from maniple.sandbox.beneath import MAX_DEPTH, components, open_directory, open_regular, replace
from maniple.types import Unavailable

_READABLE_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
# How far a listing looks past directories, links and special files.
_ENTRIES_PER_FILE = 10


@dataclass(frozen=True, slots=True)
class FileHead:
    """The first bytes of a file of `size` bytes."""

    content: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Files:
    """What is in a workspace: `found` are (path beneath `folder`, bytes), sorted."""

    folder: Path
    found: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Workspace:
    """A thread's directory. Every method blocks on disk and raises `FileError`; call them in a thread.

    Paths are relative to the workspace, or begin with /workspace as sandboxed code sees it.
    """

    path: Path
    max_file_bytes: int

    def read(self, path: str, max_bytes: int) -> FileHead:
        """The first `max_bytes` of a file."""
        parents, name = _split(path)
        with (
            _explained(path, "read"),
            open_directory(self.path, parents) as directory,
            open_regular(name, directory) as descriptor,
            os.fdopen(descriptor, "rb", closefd=False) as file,
        ):
            return FileHead(file.read(max_bytes), os.fstat(descriptor).st_size)

    def write(self, path: str, content: bytes) -> None:
        """Make or replace a file and the directories above it; when that fails, an old one is unchanged."""
        if len(content) > self.max_file_bytes:
            raise FileError(f"{path!r} would have {len(content)} bytes; the limit is {self.max_file_bytes}.")
        parents, name = _split(path)
        with _explained(path, "written"), open_directory(self.path, parents, make=True) as directory:
            replace(name, directory, content)

    def files(self, limit: int) -> list[tuple[str, int]]:
        """(path, bytes) of up to `limit` regular files, sorted; links and special files are left out."""
        return sorted((path, found.st_size) for path, found in self._regular(limit))

    def stamps(self, limit: int) -> set[tuple[str, int, int]]:
        """(path, bytes, time of the last change in nanoseconds) of the files that `files` gives."""
        return {(path, found.st_size, found.st_mtime_ns) for path, found in self._regular(limit)}

    def _regular(self, limit: int) -> Iterator[tuple[str, os.stat_result]]:
        return islice(self._walk(_ENTRIES_PER_FILE * limit), limit)

    def _walk(self, entries_left: int) -> Iterator[tuple[str, os.stat_result]]:
        """Breadth first, with one open directory at a time: a deep tree must not use up descriptors."""
        pending: list[tuple[str, ...]] = [()]
        for parts in pending:
            entries = self._entries(parts, entries_left)
            entries_left -= len(entries)
            for name, found in entries:
                inside = (*parts, name)
                if stat.S_ISREG(found.st_mode):
                    yield "/".join(inside), found
                elif stat.S_ISDIR(found.st_mode) and len(inside) < MAX_DEPTH:
                    pending.append(inside)

    def _entries(self, parts: tuple[str, ...], limit: int) -> list[tuple[str, os.stat_result]]:
        found: list[tuple[str, os.stat_result]] = []
        # What vanishes or is closed while we look is not listed.
        with (
            suppress(OSError),
            open_directory(self.path, parts) as directory,
            os.scandir(directory) as entries,
        ):
            for entry in islice(entries, limit):
                with suppress(OSError):
                    found.append((entry.name, entry.stat(follow_symlinks=False)))
        return found


class Workspaces:
    """Hands out the workspaces beneath `root`, which is made with the first of them."""

    def __init__(self, root: Path, *, max_file_bytes: int = 10_000_000) -> None:
        self._root = root.absolute()
        self._max_file_bytes = max_file_bytes

    def open(self, key: str) -> Workspace:
        """The workspace of a thread, made when it is missing; any text is a valid key. Blocks on disk."""
        workspace = self._of(key)
        with _explained(str(workspace.path), "made"):
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            workspace.path.mkdir(mode=0o700, exist_ok=True)
            give_away(workspace.path)
        return workspace

    def files(self, key: str, limit: int) -> Files:
        """The files of a thread's workspace, which is not made for that. Blocks on disk."""
        workspace = self._of(key)
        return Files(workspace.path, tuple(workspace.files(limit)))

    def discard_if_empty(self, key: str) -> None:
        """Remove a workspace in which nothing is; any other is the user's and stays. Blocks on disk."""
        with suppress(OSError):
            self._of(key).path.rmdir()

    def remove(self, key: str) -> None:
        """Remove a workspace with all that is in it; links are removed and not followed. Blocks on disk."""
        with _explained(key, "removed"), suppress(FileNotFoundError):
            shutil.rmtree(self._of(key).path)

    def obstacle(self) -> Unavailable | None:
        """What keeps workspaces from being made, as far as that shows without making one. Blocks on disk."""
        nearest = next(path for path in (self._root, *self._root.parents) if os.path.lexists(path))
        if os.access(f"{nearest}/.", os.W_OK | os.X_OK):  # the dot: a file, too, is an obstacle
            return None
        reason = f"{nearest} cannot be written, so there is no place for the team's files."
        return Unavailable(reason, "let data_dir in conf.yaml, or MANIPLE_DATA_DIR, be a folder of yours.")

    def _of(self, key: str) -> Workspace:
        return Workspace(self._root / _directory_name(key), self._max_file_bytes)


def _directory_name(key: str) -> str:
    """A harmless key stays readable on disk; the hash of any other starts with what no such key has."""
    if _READABLE_KEY.fullmatch(key):
        return key
    return "~" + hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()


def _split(path: str) -> tuple[tuple[str, ...], str]:
    parts = components(path)
    if not parts:
        raise FileError(f"{path!r} is the workspace itself; name a file in it.")
    return parts[:-1], parts[-1]


@contextmanager
def _explained(path: str, done: str) -> Iterator[None]:
    """Turn what the system says into a sentence that a model can act on."""
    try:
        yield
    except FileNotFoundError:
        raise FileError(f"There is no file {path!r} in the workspace.") from None
    except IsADirectoryError:
        raise FileError(f"{path!r} is a directory; name a file.") from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise FileError(f"{path!r} leads through a link or a file; neither is followed.") from error
        raise FileError(f"{path!r} could not be {done}: {error.strerror}.") from error
