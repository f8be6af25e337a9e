"""Files without a name that the processes of a sandbox keep, by an open descriptor or by a mapping.

What a descriptor leads to, everybody may ask of his own processes; what a mapping leads to, only root. An
ordinary user is told how far into a file its mapping reaches, and not the file's size: such a file, mapped
and closed, counts as far as it is mapped, and as `_UNSEEN_BYTES` at the least, so that there cannot be many.

Files that no process holds, because they are on their way through a socket, are seen by nobody; only that
there are some. To an ordinary user the rest of memory that processes share is not seen, either, when they
have unmapped all but some of it.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from maniple.sandbox.process_table import DIRECTORY, GONE, ProcessTable

# How the kernel names memory that was mapped to be shared with child processes.
_SHARED_MEMORY = "/dev/zero"
# from-to mode offset device inode name
_MAPPING = re.compile(rb"([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) \S+ (\d+) +(/.*) \(deleted\)$")
# What may wait in a unix socket (Linux 5.6 and later say so).
_IN_FLIGHT = re.compile(rb"scm_fds:\s+[1-9]\d*")
_BLOCK = 512
# More than the shared libraries that an installer replaces while they are in use usually have.
_UNSEEN_BYTES = 8 << 20
# Of lists of mappings; some hundred thousand of them, for which other sandboxes have to wait.
_MAX_LISTED_BYTES = 16 << 20
_HIDDEN = (
    "a process hides its open files, as programs do that nobody may read or that call prctl with "
    "PR_SET_DUMPABLE; do without it"
)


@dataclass(slots=True)
class Unlinked:
    """Bytes by inode: of files, of memory that processes share without a file, of what is only mapped."""

    disk: dict[int, int] = field(default_factory=dict[int, int])
    memory: dict[int, int] = field(default_factory=dict[int, int])
    mapped: dict[int, int] = field(default_factory=dict[int, int])
    sockets: dict[int, bool] = field(default_factory=dict[int, bool])
    """Whether files, or more sockets, wait in each to be received."""

    @property
    def disk_bytes(self) -> int:
        unseen = (size for inode, size in self.mapped.items() if inode not in self.disk)
        return sum(self.disk.values()) + sum(max(size, _UNSEEN_BYTES) for size in unseen)

    @property
    def memory_bytes(self) -> int:
        return sum(self.memory.values())

    @property
    def is_in_flight(self) -> bool:
        return any(self.sockets.values())


class Search:
    """One look for unlinked files of a workspace; blocks, and raises `OSError` for what may not be seen."""

    def __init__(self, table: ProcessTable, workspace: Path) -> None:
        self._table = table
        self._workspace = workspace.stat()
        self._root: bytes | None = None
        self._found = Unlinked()
        self._listed_bytes = 0

    def found(self) -> Unlinked:
        for pid in self._table.pids():
            # A thread may have descriptors of its own.
            for place in self._table.threads(pid):
                self._allowed(self._open_files, place)
            if living := self._table.living(pid):
                self._allowed(self._mapped_files, living.place)
        return self._found

    def _allowed(self, look: Callable[[str], None], place: str) -> None:
        try:
            look(place)
        except PermissionError:
            # It may have ended before, or while it was asked.
            if self._table.lives(place):
                raise PermissionError(_HIDDEN) from None

    def _open_files(self, place: str) -> None:
        for number, inode in self._note(f"{place}/fd"):
            if inode not in self._found.sockets:
                lines = self._table.lines(f"{place}/fdinfo/{number}")
                self._found.sockets[inode] = any(_IN_FLIGHT.fullmatch(line) for line in lines)

    def _mapped_files(self, place: str) -> None:
        deleted = [line for line in self._mappings(place) if line.endswith(b" (deleted)")]
        if not deleted:
            return
        with suppress(PermissionError):
            self._note(f"{place}/map_files")
        for line in deleted:
            if (mapping := _MAPPING.match(line)) and mapping[5].startswith(self._inner_workspace()):
                start, end, offset = (int(mapping[number], 16) for number in (1, 2, 3))
                inode, reach = int(mapping[4]), offset + end - start
                self._found.mapped[inode] = max(reach, self._found.mapped.get(inode, 0))

    def _mappings(self, place: str) -> Iterator[bytes]:
        for line in self._table.lines(f"{place}/maps"):
            yield line
            self._listed_bytes += len(line)
            if self._listed_bytes > _MAX_LISTED_BYTES:
                raise OSError("the processes have too many mappings to be looked at")

    def _note(self, folder: str) -> list[tuple[str, int]]:
        """Count what is unlinked in there; return the name and inode of each socket."""
        sockets: list[tuple[str, int]] = []
        with suppress(*GONE):
            where = os.open(folder, DIRECTORY, dir_fd=self._table.directory)
            try:
                with os.scandir(where) as entries:
                    for entry in entries:
                        with suppress(*GONE):
                            found = entry.stat()
                            if stat.S_ISSOCK(found.st_mode):
                                sockets.append((entry.name, found.st_ino))
                            elif found.st_nlink == 0 and stat.S_ISREG(found.st_mode):
                                self._count(os.readlink(entry.name, dir_fd=where), found)
            finally:
                os.close(where)
        return sockets

    def _count(self, name: str, found: os.stat_result) -> None:
        if name.startswith(_SHARED_MEMORY):
            self._found.memory[found.st_ino] = found.st_blocks * _BLOCK
        elif found.st_dev == self._workspace.st_dev:
            self._found.disk[found.st_ino] = found.st_blocks * _BLOCK

    def _inner_workspace(self) -> bytes:
        """Where the code sees the workspace; the host's own files may be replaced at any time."""
        if self._root is None:
            self._root = next(filter(self._is_workspace, self._mount_points()), b"/") + b"/"
        return self._root

    def _mount_points(self) -> Iterator[bytes]:
        # Process 1 has no mounts any more while the sandbox ends; that is told as a wrong argument.
        with suppress(OSError):
            for line in self._table.lines("1/mountinfo"):
                yield line.split(b" ")[4]

    def _is_workspace(self, mount_point: bytes) -> bool:
        with suppress(OSError):
            found = os.stat(b"1/root" + mount_point, dir_fd=self._table.directory)
            return os.path.samestat(found, self._workspace)
        return False
