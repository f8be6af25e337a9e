"""One directory of a thread, and the only way the host touches files in it."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from maniple.errors import FileError, WorkspaceFull
from maniple.sandbox.beneath import DRAFT, MAX_DEPTH, components, open_directory, open_regular, replace
from maniple.sandbox.folder import TO_CHANGE, allow_owner

BESIDE = ".beside"
"""Where, next to the workspaces, is kept what is known of each; no workspace's name begins with a dot."""
# How far a listing looks past directories, links and special files.
_ENTRIES_PER_FILE = 10
_COUNTED_ENTRIES = 50_000


@dataclass(frozen=True, slots=True)
class FileHead:
    """The first bytes of a file of `size` bytes."""

    content: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Workspace:
    """A thread's directory. Every method blocks on disk and raises `FileError`; call them in a thread.

    Paths are relative to the workspace, or begin with /workspace as sandboxed code sees it. `max_bytes` is
    what all files of it together may have after the host has written one.
    """

    path: Path
    max_file_bytes: int
    max_bytes: int | None = None

    def read(self, path: str, max_bytes: int) -> FileHead:
        """The first `max_bytes` of a file."""
        with self.open(path) as file:
            return FileHead(file.read(max_bytes), os.fstat(file.fileno()).st_size)

    def open(self, path: str) -> BinaryIO:
        """An open file, for whoever reads it piece by piece; to be closed."""
        parents, name = _split(path)
        with (
            _explained(path, "read"),
            open_directory(self.path, parents) as directory,
            open_regular(name, directory) as descriptor,
        ):
            return os.fdopen(os.dup(descriptor), "rb")

    def size(self, path: str) -> int | None:
        """The bytes of a file; None when there is none that can be read."""
        with suppress(FileError), self.open(path) as file:
            return os.fstat(file.fileno()).st_size
        return None

    def write(self, path: str, content: bytes) -> None:
        """Make or replace a file and the directories above it; when that fails, an old one is unchanged."""
        if len(content) > self.max_file_bytes:
            raise FileError(f"{path!r} would have {len(content)} bytes; the limit is {self.max_file_bytes}.")
        self.write_pieces(path, [content], len(content))

    def lay(self, path: str, content: bytes, *, executable: bool = False) -> None:
        """Do as `write`, with a file that is there to be read: nobody changes it by mistake."""
        self._replace(path, [content], len(content), 0o555 if executable else 0o444)

    def is_laid(self, path: str) -> bool:
        """Whether this is a file that is only to be read."""
        with suppress(FileError), self.open(path) as file:
            return not os.fstat(file.fileno()).st_mode & 0o222
        return False

    def write_pieces(self, path: str, pieces: Iterable[bytes], size: int) -> None:
        """Do as `write`, with a content of `size` bytes that need not be in memory, however large."""
        self._replace(path, pieces, size, None)

    def _replace(self, path: str, pieces: Iterable[bytes], size: int, mode: int | None) -> None:
        parents, name = _split(path)
        self.check_room(size - (self.size(path) or 0))
        with _explained(path, "written"), open_directory(self.path, parents, make=True) as directory:
            allow_owner(directory, TO_CHANGE)
            replace(name, directory, pieces, mode)

    def check_room(self, more: int) -> None:
        """Raise `WorkspaceFull` when the files cannot take so many bytes more."""
        if self.max_bytes is None or more <= 0:
            return
        used = sum(found.st_size for _, found in self._walk((), _COUNTED_ENTRIES))
        if used + more > self.max_bytes:
            raise WorkspaceFull(
                f"The workspace holds {used} bytes and may hold {self.max_bytes}: {more} more do not fit. "
                "Delete what is not needed, or write an empty text over it (sandbox.disk_mb is the limit)."
            )

    def delete(self, path: str) -> None:
        """Remove a file; of a link, the link."""
        parents, name = _split(path)
        with _explained(path, "deleted"), open_directory(self.path, parents) as directory:
            allow_owner(directory, TO_CHANGE)
            os.unlink(name, dir_fd=directory)

    def is_missing(self, path: str) -> bool:
        """Whether nothing has this name."""
        parents, name = _split(path)
        try:
            with open_directory(self.path, parents) as directory:
                os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            return True
        except OSError:
            pass  # something is in the way: whoever reads or writes there is told what
        return False

    def is_directory(self, path: str) -> bool:
        """Whether this is a directory that can be opened; the workspace itself is one."""
        with suppress(OSError), open_directory(self.path, components(path)):
            return True
        return False

    def files(self, limit: int, beneath: str = "") -> list[tuple[str, int]]:
        """(path, bytes) of up to `limit` regular files, sorted; links and special files are left out."""
        return sorted((path, found.st_size) for path, found in self._regular(limit, components(beneath)))

    def newest(self, limit: int) -> list[tuple[str, int, int]]:
        """(path, bytes, time of the last change in nanoseconds) of up to `limit` regular files, newest first.

        The time is the kernel's: code cannot set it.
        """
        found = sorted(self._regular(limit), key=lambda one: one[1].st_ctime_ns, reverse=True)
        return [(path, status.st_size, status.st_ctime_ns) for path, status in found]

    def stamps(self, limit: int) -> set[tuple[str, int, int]]:
        """(path, bytes, time of the last change in nanoseconds) of the files that `files` gives."""
        return {(path, found.st_size, found.st_mtime_ns) for path, found in self._regular(limit)}

    def _regular(self, limit: int, parts: tuple[str, ...] = ()) -> Iterator[tuple[str, os.stat_result]]:
        walked = self._walk(parts, _ENTRIES_PER_FILE * limit)
        whole = ((path, found) for path, found in walked if not path.rpartition("/")[2].startswith(DRAFT))
        return islice(whole, limit)

    def _walk(self, parts: tuple[str, ...], entries_left: int) -> Iterator[tuple[str, os.stat_result]]:
        """Breadth first, with one open directory at a time: a deep tree must not use up descriptors."""
        pending: list[tuple[str, ...]] = [parts]
        for above in pending:
            entries = self._entries(above, entries_left)
            entries_left -= len(entries)
            for name, found in entries:
                inside = (*above, name)
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
        kind = WorkspaceFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else FileError
        raise kind(f"{path!r} could not be {done}: {error.strerror}.") from error
