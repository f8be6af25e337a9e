"""Measures the resources that all processes of one sandbox use together, from the host.

A sandbox has its own /proc, which lists exactly the processes of its namespace, including those that left
their parent. The host reaches it through the root directory of a process inside (proc(5)), so a measurement
costs one listing, regardless of what else runs on the host.

A process can outlive its first thread; then only its other threads report its data. A process without memory
has ended even if it was not reaped; its entries are forbidden to an ordinary user, as if it were root's.

Removed files can still be open or mapped. Any user may see the target of a descriptor, but only root that of
a mapping. An ordinary user sees how far a mapping reaches into a file, not the file's size: such a file
counts as far as it is mapped, and as `_UNSEEN_BYTES` at least, so that there cannot be many. The size of
files that wait in a socket is invisible; only their presence shows. Shared memory that processes have mostly
unmapped is invisible to an ordinary user, too.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from maniple.sandbox.socket_memory import SocketBounds

_IN_MEMORY = ("tmp", "dev/shm")
_OWN = re.compile(rb"^(?:RssAnon|VmSwap):\s+(\d+) kB", re.MULTILINE)
_SHARED = re.compile(rb"^RssShmem:\s+(\d+) kB", re.MULTILINE)
_PART_OF_OWN = re.compile(rb"^(?:Pss_Anon|SwapPss):\s+(\d+) kB", re.MULTILINE)
_PART_OF_SHARED = re.compile(rb"^Pss_Shmem:\s+(\d+) kB", re.MULTILINE)
_SOCKETS = re.compile(rb"^sockets: used (\d+)", re.MULTILINE)
# Kernel memory for an empty file on tmpfs and its name.
_INODE_BYTES = 1024


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """`memory_bytes` is the memory that the end of the sandbox would free, without the page cache.

    `socket_bytes` of it is what the sockets can hold.
    """

    memory_bytes: int
    processes: int
    socket_bytes: int = 0


class SandboxInspector:
    """Measures a running sandbox: its processes and its files in memory.

    Every method blocks for 0.1 to 0.5 ms per process, and raises `OSError` when a measurement fails.
    """

    def __init__(self, processes: int, in_memory: tuple[int, ...]) -> None:
        """Take ownership of open directories: the sandbox's /proc and its file systems in memory."""
        self._table = ProcessTable(processes)
        self._in_memory = in_memory
        self._activity = ThreadActivity(self._table)
        self._bounds = SocketBounds()
        self._shared_bytes = 0
        self.is_in_flight = False
        """Whether files waited in a socket at the last search for unlinked files."""

    def close(self) -> None:
        self._activity.forget()
        self._table.close()
        for descriptor in self._in_memory:
            os.close(descriptor)

    def mark_activity(self) -> None:
        """Let `has_run` report what runs from now on."""
        self._activity.mark()

    def has_run(self) -> bool:
        """Return whether any thread may have run since `mark_activity`; costs a microsecond per process."""
        return self._activity.has_run()

    def usage(self, memory_limit_bytes: int) -> ResourceUsage:
        """Estimate the memory; measure exactly (1 ms per 100 MB) only where the estimate exceeds the limit.

        The estimate counts a page that two processes share after a fork twice. The kernel reports anonymous
        shared memory and mapped files on tmpfs in one number, and the latter already count. So the greater of
        this number and those files counts: nothing counts twice, and the result is too small by those files
        at most.
        """
        pids = self._table.pids()
        in_files, sockets = self._tmpfs_bytes() + self._shared_bytes, self._socket_bytes()

        def together(amounts: Iterable[tuple[int, int]]) -> int:
            own, shared = map(sum, zip((0, 0), *amounts, strict=True))
            return own + max(shared, in_files) + sockets

        memory = together(map(self._resident, pids))
        if memory > memory_limit_bytes:
            memory = together(map(self._part, pids))
        return ResourceUsage(memory, len(pids), sockets)

    def unlinked_bytes(self, workspace: Path) -> int:
        """Return the bytes of removed files of `workspace` that are still open or mapped.

        Also finds anonymous shared memory, which belongs to no process and stays as long as one page is
        mapped; from then on `usage` counts it.
        """
        found = UnlinkedFileSearch(self._table, workspace).found()
        self._shared_bytes = found.memory_bytes
        self.is_in_flight = found.is_in_flight
        return found.disk_bytes

    def _resident(self, pid: str) -> tuple[int, int]:
        """Return the private and the shared memory of a process, in bytes."""
        living = self._table.find_live_thread(pid)
        return _amounts(_OWN, _SHARED, living.status) if living else (0, 0)

    def _part(self, pid: str) -> tuple[int, int]:
        """Return its proportional share of memory; all of it where the kernel does not report the share."""
        living = self._table.find_live_thread(pid)
        if living is None:
            return 0, 0
        with suppress(PermissionError):
            rollup = self._table.read(f"{living.place}/smaps_rollup")
            if _PART_OF_OWN.search(rollup):
                return _amounts(_PART_OF_OWN, _PART_OF_SHARED, rollup)
        return _amounts(_OWN, _SHARED, living.status)

    def _tmpfs_bytes(self) -> int:
        file_systems = [os.fstatvfs(descriptor) for descriptor in self._in_memory]
        blocks = sum((each.f_blocks - each.f_bfree) * each.f_frsize for each in file_systems)
        return blocks + sum((each.f_files - each.f_ffree) * _INODE_BYTES for each in file_systems)

    def _socket_bytes(self) -> int:
        used = sum(int(count) for count in _SOCKETS.findall(self._table.read("1/net/sockstat")))
        return used * self._bounds.bytes_per_socket(lambda name: self._table.read(f"1/root/{name}"))


def _amounts(own: re.Pattern[bytes], shared: re.Pattern[bytes], text: bytes) -> tuple[int, int]:
    return _sum_kilobytes(own, text), _sum_kilobytes(shared, text)


def _sum_kilobytes(pattern: re.Pattern[bytes], text: bytes) -> int:
    return 1024 * sum(int(kilobytes) for kilobytes in pattern.findall(text))


def find_inspector(leader: int) -> SandboxInspector | None:
    """Return an inspector of the sandbox that host process `leader` has started.

    None if there is none yet.
    """
    with suppress(OSError):  # it is starting or ending
        inside = find_process_inside(leader)
        return None if inside is None else _opened(f"/proc/{inside}/root")
    return None


def find_process_inside(leader: int) -> int | None:
    """Return the host's id of the first process that is inside that sandbox; None as above."""
    host = Path("/proc").stat().st_dev
    for pid in _descendants(leader):
        with suppress(OSError):  # it is starting or ending
            if Path(f"/proc/{pid}/root/proc/1").stat().st_dev != host:
                return pid
    return None


def _opened(root: str) -> SandboxInspector:
    opened: list[int] = []
    try:
        for name in ("proc", *_IN_MEMORY):
            opened.append(os.open(f"{root}/{name}", DIRECTORY))
    except OSError:
        for descriptor in opened:
            os.close(descriptor)
        raise
    return SandboxInspector(opened[0], tuple(opened[1:]))


def _descendants(leader: int) -> Iterator[int]:
    """Yield the process and its descendants that were started by first threads."""
    pending = [leader]
    for pid in pending:
        yield pid
        with suppress(*GONE):
            pending += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# The errors for a process or namespace that has ended meanwhile. Any other error goes to the caller: what
# cannot be measured must not count as nothing.
GONE = (FileNotFoundError, ProcessLookupError)
_HAS_MEMORY = re.compile(rb"^RssAnon:", re.MULTILINE)
_ONE_THREAD = re.compile(rb"^Threads:\s+[01]$", re.MULTILINE)
# Threads can end while they are examined.
_ATTEMPTS = 3
# The kernel returns at most one page of most files per read.
_PAGE = 4096


@dataclass(frozen=True, slots=True)
class LiveThread:
    """A thread that reports data of its process: its path below /proc and its `status`."""

    place: str
    status: bytes


class ProcessTable:
    """The /proc of one sandbox.

    Every method blocks; raises `OSError` for unreadable data of a live process.
    """

    def __init__(self, directory: int) -> None:
        """Take ownership of an open directory, the sandbox's /proc."""
        self.directory = directory

    def close(self) -> None:
        os.close(self.directory)

    def pids(self) -> list[str]:
        return self._numbers(self.directory)

    def threads(self, pid: str) -> list[str]:
        """Return the paths of all threads of a process, ended ones too."""
        with suppress(*GONE):
            folder = os.open(f"{pid}/task", DIRECTORY, dir_fd=self.directory)
            try:
                return [f"{pid}/task/{thread}" for thread in self._numbers(folder)]
            finally:
                os.close(folder)
        return []

    def find_live_thread(self, pid: str) -> LiveThread | None:
        """Return the first live thread; None for a process that has ended or is ending.

        Raises `OSError` when threads end faster than they can be examined while others start.
        """
        known: set[str] = set()
        for _ in range(_ATTEMPTS):
            status = self.read(f"{pid}/status")
            if _HAS_MEMORY.search(status):
                return LiveThread(pid, status)
            if not status or _ONE_THREAD.search(status):
                return None
            places = self.threads(pid)
            for place in places:
                if _HAS_MEMORY.search(status := self.read(f"{place}/status")):
                    return LiveThread(place, status)
            # An ending process starts no more threads.
            if known and not known.issuperset(places):
                raise OSError("the threads of a process end too fast to be examined")
            known.update(places)
        return None

    def is_alive(self, place: str) -> bool:
        return _HAS_MEMORY.search(self.read(f"{place}/status")) is not None

    def read(self, name: str) -> bytes:
        """Return the first page of a file, which is all of a short one; empty if it has vanished."""
        return next(self._pages(name), b"")

    def lines(self, name: str) -> Iterator[bytes]:
        """Yield all lines of a file."""
        rest = b""
        for page in self._pages(name):
            *lines, rest = (rest + page).split(b"\n")
            yield from lines

    def _pages(self, name: str) -> Iterator[bytes]:
        with suppress(*GONE):
            descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.directory)
            try:
                while page := os.read(descriptor, _PAGE):
                    yield page
            finally:
                os.close(descriptor)

    def _numbers(self, folder: int) -> list[str]:
        with suppress(*GONE), os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.name.isdecimal()]
        return []


# A sandbox with more threads costs more descriptors than its measurements save.
_MAX_MARKED_THREADS = 16
# The counters of a kernel that does not count.
_NO_COUNTS = b"0 0 0"


class ThreadActivity:
    """Notes how often each thread of a sandbox has run, and whether that has changed since.

    The kernel counts it (`schedstat` in proc_pid_schedstat(5)). Only a thread that runs can use more memory,
    write a file or start another thread. So a sandbox whose counters are unchanged is unchanged as a whole.
    """

    def __init__(self, table: ProcessTable) -> None:
        self._table = table
        self._counters: list[int] = []
        """An open file for each thread; empty while nothing is noted."""
        self._noted: list[bytes] = []

    def mark(self) -> None:
        """Note the present counters; nothing is noted of a sandbox that starts threads meanwhile."""
        self.forget()
        threads = self._list_threads()
        if not 0 < len(threads) <= _MAX_MARKED_THREADS:
            return
        try:
            for place in threads:
                name = f"{place}/schedstat"
                self._counters.append(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._table.directory))
            self._noted = self._read()
        except OSError:
            self.forget()
            return
        # A thread that was started before its starter's counters were read would go unnoticed.
        if self._list_threads() != threads or any(one.startswith(_NO_COUNTS) for one in self._noted):
            self.forget()

    def has_run(self) -> bool:
        """Return whether any thread has run since `mark`, or nothing is noted."""
        if not self._counters:
            return True
        try:
            return self._read() != self._noted
        except ProcessLookupError:  # it has ended
            return True

    def forget(self) -> None:
        """Close the files; `has_run` returns True until the next `mark`."""
        for descriptor in self._counters:
            os.close(descriptor)
        self._counters.clear()

    def _read(self) -> list[bytes]:
        return [os.pread(descriptor, _PAGE, 0) for descriptor in self._counters]

    def _list_threads(self) -> list[str]:
        return [place for pid in self._table.pids() for place in self._table.threads(pid)]


# The kernel's name for anonymous memory shared with child processes.
_SHARED_MEMORY = "/dev/zero"
# from-to mode offset device inode name
_MAPPING = re.compile(rb"([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) \S+ (\d+) +(/.*) \(deleted\)$")
# Descriptors that wait in a unix socket (Linux 5.6 and later report them).
_IN_FLIGHT = re.compile(rb"scm_fds:\s+[1-9]\d*")
_BLOCK = 512
# More than the size of most shared libraries, which an installer may replace while they are in use.
_UNSEEN_BYTES = 8 << 20
# A limit for lists of mappings: other sandboxes wait while they are read.
_MAX_LISTED_BYTES = 16 << 20
_HIDDEN = (
    "a process hides its open files, as unreadable programs and callers of prctl(PR_SET_DUMPABLE) do; "
    "do not use them"
)


@dataclass(slots=True)
class UnlinkedFiles:
    """Bytes by inode: of open files, of anonymous shared memory, of files that are only mapped."""

    disk: dict[int, int] = field(default_factory=dict[int, int])
    memory: dict[int, int] = field(default_factory=dict[int, int])
    mapped: dict[int, int] = field(default_factory=dict[int, int])
    sockets: dict[int, bool] = field(default_factory=dict[int, bool])
    """By inode, whether descriptors wait in the socket."""

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


class UnlinkedFileSearch:
    """Finds unlinked files of a workspace; blocks, and raises `OSError` for hidden data."""

    def __init__(self, table: ProcessTable, workspace: Path) -> None:
        self._table = table
        self._workspace = workspace.stat()
        self._root: bytes | None = None
        self._found = UnlinkedFiles()
        self._listed_bytes = 0

    def found(self) -> UnlinkedFiles:
        for pid in self._table.pids():
            # A thread can have descriptors of its own.
            for place in self._table.threads(pid):
                self._allowed(self._open_files, place)
            if living := self._table.find_live_thread(pid):
                self._allowed(self._mapped_files, living.place)
        return self._found

    def _allowed(self, look: Callable[[str], None], place: str) -> None:
        try:
            look(place)
        except PermissionError:
            # It may have ended meanwhile.
            if self._table.is_alive(place):
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
                raise OSError("the processes have too many mappings to be examined")

    def _note(self, folder: str) -> list[tuple[str, int]]:
        """Count the unlinked files of a folder of descriptors; return the name and inode of each socket."""
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
        """Return the mount point of the workspace inside.

        The host's other files may be replaced at any time.
        """
        if self._root is None:
            self._root = next(filter(self._is_workspace, self._mount_points()), b"/") + b"/"
        return self._root

    def _mount_points(self) -> Iterator[bytes]:
        # While the sandbox ends, process 1 has no mounts; the kernel then returns EINVAL.
        with suppress(OSError):
            for line in self._table.lines("1/mountinfo"):
                yield line.split(b" ")[4]

    def _is_workspace(self, mount_point: bytes) -> bool:
        with suppress(OSError):
            found = os.stat(b"1/root" + mount_point, dir_fd=self._table.directory)
            return os.path.samestat(found, self._workspace)
        return False
