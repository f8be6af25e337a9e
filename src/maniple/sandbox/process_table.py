"""The /proc of one sandbox, read from the host: its processes, their threads and what they tell.

A process goes on after its first thread has ended, and only its other threads tell of it then. One without
any memory has ended, even if its parent has not asked for it yet; to an ordinary user its entries are
forbidden ones, as if it were root's.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# How a process, or a whole namespace, that ended meanwhile shows. Any other error is the caller's: what
# cannot be counted must not count as nothing.
GONE = (FileNotFoundError, ProcessLookupError)
_HAS_MEMORY = re.compile(rb"^RssAnon:", re.MULTILINE)
_ONE_THREAD = re.compile(rb"^Threads:\s+[01]$", re.MULTILINE)
# For threads that end while they are looked at.
_ATTEMPTS = 3
# The kernel gives at most a page of most files at a time, whatever is asked for.
_PAGE = 4096


@dataclass(frozen=True, slots=True)
class Living:
    """A thread that tells of its process: where, below /proc, and its `status`."""

    place: str
    status: bytes


class ProcessTable:
    """Every method blocks, and raises `OSError` for what could not be read of a living process."""

    def __init__(self, directory: int) -> None:
        """Takes over an open directory, the sandbox's /proc."""
        self.directory = directory

    def close(self) -> None:
        os.close(self.directory)

    def pids(self) -> list[str]:
        return self._numbers(self.directory)

    def threads(self, pid: str) -> list[str]:
        """The places of all threads of a process, ended ones too."""
        with suppress(*GONE):
            folder = os.open(f"{pid}/task", DIRECTORY, dir_fd=self.directory)
            try:
                return [f"{pid}/task/{thread}" for thread in self._numbers(folder)]
            finally:
                os.close(folder)
        return []

    def living(self, pid: str) -> Living | None:
        """The first thread that lives; None of a process that has ended, or is ending.

        Raises `OSError` when threads end sooner than they can be asked, and others begin.
        """
        known: set[str] = set()
        for _ in range(_ATTEMPTS):
            status = self.read(f"{pid}/status")
            if _HAS_MEMORY.search(status):
                return Living(pid, status)
            if not status or _ONE_THREAD.search(status):
                return None
            places = self.threads(pid)
            for place in places:
                if _HAS_MEMORY.search(status := self.read(f"{place}/status")):
                    return Living(place, status)
            # One that is ending begins no more threads.
            if known and not known.issuperset(places):
                raise OSError("the threads of a process end too fast to be looked at")
            known.update(places)
        return None

    def lives(self, place: str) -> bool:
        return _HAS_MEMORY.search(self.read(f"{place}/status")) is not None

    def read(self, name: str) -> bytes:
        """The first page of a file, which is all of a short one; empty where it is gone."""
        return next(self._pages(name), b"")

    def lines(self, name: str) -> Iterator[bytes]:
        """All of a file, in lines."""
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
