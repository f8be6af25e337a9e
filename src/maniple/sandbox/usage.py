"""What the processes of one sandbox take together, seen from the host.

A sandbox has its own /proc, which lists exactly the processes of its namespace, those among them that
left their parent. The host reaches it through the root directory of a process inside (proc(5)): one
listing for each look, whatever else runs on the host.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from maniple.sandbox.process_table import DIRECTORY, GONE, ProcessTable
from maniple.sandbox.unlinked import Search

_IN_MEMORY = ("tmp", "dev/shm")
_OWN = re.compile(rb"^(?:RssAnon|VmSwap):\s+(\d+) kB", re.MULTILINE)
_SHARED = re.compile(rb"^RssShmem:\s+(\d+) kB", re.MULTILINE)
_PART_OF_OWN = re.compile(rb"^(?:Pss_Anon|SwapPss):\s+(\d+) kB", re.MULTILINE)
_PART_OF_SHARED = re.compile(rb"^Pss_Shmem:\s+(\d+) kB", re.MULTILINE)
_SOCKETS = re.compile(rb"^sockets: used (\d+)", re.MULTILINE)
# What an unread unix socket can hold: twice the usual net.core.wmem_max.
_SOCKET_BYTES = 425_984
# What the kernel keeps for an empty file in memory and its name.
_INODE_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Usage:
    """`memory_bytes` is what would be free if the sandbox were gone; the page cache is not in it."""

    memory_bytes: int
    processes: int


class Inside:
    """A living sandbox's processes and its files in memory.

    Every method blocks, for 0.1 to 0.5 ms a process, and raises `OSError` when something could not be
    counted.
    """

    def __init__(self, processes: int, in_memory: tuple[int, ...]) -> None:
        """Takes over open directories: the sandbox's /proc and its file systems in memory."""
        self._table = ProcessTable(processes)
        self._in_memory = in_memory
        self._shared_bytes = 0
        self.is_in_flight = False
        """Whether, at the last look for unlinked files, some were on their way through a socket."""

    def close(self) -> None:
        self._table.close()
        for descriptor in self._in_memory:
            os.close(descriptor)

    def usage(self, memory_limit_bytes: int) -> Usage:
        """Count memory cheaply; exactly, at about 1 ms for 100 MB, only where that is over the limit.

        The cheap sum counts a page that a fork left to both processes twice. The kernel tells in one number
        what processes share without a file and what they map of files in memory, which count already. So
        the greater counts, this number or those files: nothing twice, and too little by those files at most.
        """
        pids = self._table.pids()
        in_files, sockets = self._tmpfs_bytes() + self._shared_bytes, self._socket_bytes()

        def together(amounts: Iterable[tuple[int, int]]) -> int:
            own, shared = map(sum, zip((0, 0), *amounts, strict=True))
            return own + max(shared, in_files) + sockets

        memory = together(map(self._resident, pids))
        if memory > memory_limit_bytes:
            memory = together(map(self._part, pids))
        return Usage(memory, len(pids))

    def unlinked_bytes(self, workspace: Path) -> int:
        """What files of `workspace` take that have no name any more and are still open or mapped.

        Finds memory that processes share without a file, too, which belongs to none of them and is kept
        by a single mapped page; from then on `usage` counts it.
        """
        found = Search(self._table, workspace).found()
        self._shared_bytes = found.memory_bytes
        self.is_in_flight = found.is_in_flight
        return found.disk_bytes

    def _resident(self, pid: str) -> tuple[int, int]:
        """What is its own and what it shares, in bytes."""
        living = self._table.living(pid)
        return _amounts(_OWN, _SHARED, living.status) if living else (0, 0)

    def _part(self, pid: str) -> tuple[int, int]:
        """Its part of what it has with others; all of that where the kernel does not tell the part."""
        living = self._table.living(pid)
        if living is None:
            return 0, 0
        with suppress(PermissionError):
            told = self._table.read(f"{living.place}/smaps_rollup")
            if _PART_OF_OWN.search(told):
                return _amounts(_PART_OF_OWN, _PART_OF_SHARED, told)
        return _amounts(_OWN, _SHARED, living.status)

    def _tmpfs_bytes(self) -> int:
        file_systems = [os.fstatvfs(descriptor) for descriptor in self._in_memory]
        blocks = sum((each.f_blocks - each.f_bfree) * each.f_frsize for each in file_systems)
        return blocks + sum((each.f_files - each.f_ffree) * _INODE_BYTES for each in file_systems)

    def _socket_bytes(self) -> int:
        return _SOCKET_BYTES * sum(int(used) for used in _SOCKETS.findall(self._table.read("1/net/sockstat")))


def _amounts(own: re.Pattern[bytes], shared: re.Pattern[bytes], text: bytes) -> tuple[int, int]:
    return _sum_kilobytes(own, text), _sum_kilobytes(shared, text)


def _sum_kilobytes(pattern: re.Pattern[bytes], text: bytes) -> int:
    return 1024 * sum(int(kilobytes) for kilobytes in pattern.findall(text))


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
            opened.append(os.open(f"{root}/{name}", DIRECTORY))
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
        with suppress(*GONE):
            pending += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
