"""What the processes of one sandbox take together, seen from the host.

A sandbox has its own /proc, which lists exactly the processes of its namespace, those among them that
left their parent. The host reaches it through the root directory of a process inside (proc(5)): one
listing for each look, whatever else runs on the host.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_IN_MEMORY = ("tmp", "dev/shm")
_ANONYMOUS = re.compile(rb"^(?:RssAnon|VmSwap):\s+(\d+) kB", re.MULTILINE)
_ANONYMOUS_SHARE = re.compile(rb"^(?:Pss_Anon|SwapPss):\s+(\d+) kB", re.MULTILINE)
_SOCKETS = re.compile(rb"^sockets: used (\d+)", re.MULTILINE)
# What an unread unix socket can hold: twice the usual net.core.wmem_max.
_SOCKET_BYTES = 425_984
# What the kernel keeps for an empty file in memory and its name.
_INODE_BYTES = 1024
# How the kernel names memory that was mapped to be shared with child processes.
_SHARED_MEMORY = "/dev/zero"
_BLOCK = 512
_PAGE = 4096
# Of a list of mappings: some ten thousand of them.
_LONG = 1 << 20
# How a process, or a whole namespace, that ended meanwhile shows. Any other error is the caller's: what
# cannot be counted must not count as nothing.
_GONE = (FileNotFoundError, ProcessLookupError)


@dataclass(frozen=True, slots=True)
class Usage:
    """`memory_bytes` is what would be free if the sandbox were gone; the page cache is not in it."""

    memory_bytes: int
    processes: int


class Inside:
    """A living sandbox's processes and its files in memory.

    Every method blocks, for about 0.1 ms, and raises `OSError` when something could not be counted.
    """

    def __init__(self, processes: int, in_memory: tuple[int, ...]) -> None:
        """Takes over open directories: the sandbox's /proc and its file systems in memory."""
        self._processes = processes
        self._in_memory = in_memory
        self._shared_bytes = 0

    def close(self) -> None:
        for descriptor in (self._processes, *self._in_memory):
            os.close(descriptor)

    def usage(self, memory_limit_bytes: int) -> Usage:
        """Count memory cheaply; exactly, at about 1 ms for 100 MB, only where that is over the limit.

        The cheap sum counts a page that a fork left to both processes twice.
        """
        pids = self._pids()
        outside = self._tmpfs_bytes() + self._socket_bytes() + self._shared_bytes
        memory = outside + sum(map(self._resident, pids))
        if memory > memory_limit_bytes:
            memory = outside + sum(map(self._share, pids))
        return Usage(memory, len(pids))

    def unlinked_bytes(self, device: int) -> int:
        """What files on `device` take that have no name any more and are still open or mapped.

        Finds memory that processes share without a file, too, which belongs to none of them and is kept
        by a single mapped page; from then on `usage` counts it.
        """
        disk: dict[int, int] = {}
        memory: dict[int, int] = {}
        for pid in self._pids():
            for name, found in self._unlinked_files(pid):
                if name.startswith(_SHARED_MEMORY):
                    memory[found.st_ino] = found.st_blocks * _BLOCK
                elif found.st_dev == device:
                    disk[found.st_ino] = found.st_blocks * _BLOCK
        self._shared_bytes = sum(memory.values())
        return sum(disk.values())

    def _pids(self) -> list[str]:
        with suppress(*_GONE), os.scandir(self._processes) as entries:
            return [entry.name for entry in entries if entry.name.isdecimal()]
        return []

    def _resident(self, pid: str) -> int:
        return _sum_kilobytes(_ANONYMOUS, self._read(f"{pid}/status"))

    def _share(self, pid: str) -> int:
        """Its part of what it shares with others; all of that where the kernel does not tell the part."""
        with suppress(PermissionError):
            told = self._read(f"{pid}/smaps_rollup")
            if _ANONYMOUS_SHARE.search(told):
                return _sum_kilobytes(_ANONYMOUS_SHARE, told)
        return self._resident(pid)

    def _read(self, name: str, max_bytes: int = _PAGE) -> bytes:
        with suppress(*_GONE):
            descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._processes)
            try:
                return os.read(descriptor, max_bytes)
            finally:
                os.close(descriptor)
        return b""

    def _tmpfs_bytes(self) -> int:
        file_systems = [os.fstatvfs(descriptor) for descriptor in self._in_memory]
        blocks = sum((each.f_blocks - each.f_bfree) * each.f_frsize for each in file_systems)
        return blocks + sum((each.f_files - each.f_ffree) * _INODE_BYTES for each in file_systems)

    def _socket_bytes(self) -> int:
        return _SOCKET_BYTES * sum(int(used) for used in _SOCKETS.findall(self._read("1/net/sockstat")))

    def _unlinked_files(self, pid: str) -> Iterator[tuple[str, os.stat_result]]:
        # Whose mappings are whose files, the kernel tells only root.
        mapped = b"(deleted)" in self._read(f"{pid}/maps", _LONG)
        for folder in ("fd", "map_files") if mapped else ("fd",):
            with suppress(*_GONE):
                where = os.open(f"{pid}/{folder}", _DIRECTORY, dir_fd=self._processes)
                try:
                    yield from _unlinked(where)
                finally:
                    os.close(where)


def _sum_kilobytes(pattern: re.Pattern[bytes], text: bytes) -> int:
    return 1024 * sum(int(kilobytes) for kilobytes in pattern.findall(text))


def _unlinked(directory: int) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            with suppress(*_GONE, PermissionError):
                found = entry.stat()
                if found.st_nlink == 0 and stat.S_ISREG(found.st_mode):
                    yield os.readlink(entry.name, dir_fd=directory), found


def find_inside(leader: int) -> Inside | None:
    """The sandbox that host process `leader` has started, or None while there is none yet."""
    host = Path("/proc").stat().st_dev
    for pid in _descendants(leader):
        root = f"/proc/{pid}/root"
        with suppress(OSError):  # it is being set up, or ends
            if Path(f"{root}/proc/1").stat().st_dev != host:
                return _opened(root)
    return None


def _opened(root: str) -> Inside:
    opened: list[int] = []
    try:
        for name in ("proc", *_IN_MEMORY):
            opened.append(os.open(f"{root}/{name}", _DIRECTORY))
    except OSError:
        for descriptor in opened:
            os.close(descriptor)
        raise
    return Inside(opened[0], tuple(opened[1:]))


def _descendants(leader: int) -> Iterator[int]:
    """The process and its children's children, as far as their first threads started them."""
    pending = [leader]
    for pid in pending:
        yield pid
        with suppress(*_GONE):
            pending += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
