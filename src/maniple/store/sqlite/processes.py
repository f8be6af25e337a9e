"""Who has the file open, told by locks that the kernel frees when a process dies, however it dies."""

import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from maniple.errors import StoreBusy

OPENING_SECONDS = 30.0
_OPENING = "opening"


class Processes:
    """The directory FILE.d, with a locked file for each process that has FILE open."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._directory = path.with_name(f"{path.name}.d")
        self.own = str(uuid4())
        self._held: list[int] = []

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Hold the lock under which one process at a time opens the file. Blocks."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = _file(self._directory / _OPENING)
        try:
            deadline = time.monotonic() + OPENING_SECONDS
            while not _taken(lock, fcntl.LOCK_EX):
                if time.monotonic() > deadline:
                    raise StoreBusy(f"{self._path} has been opened by another process for too long; end it.")
                time.sleep(0.02)
            yield
        finally:
            os.close(lock)

    def become_server(self) -> None:
        """Take the server's lock; raises `StoreBusy` naming the process that has it."""
        lock = _file(self._path.with_name(f"{self._path.name}.server.lock"))
        if not _taken(lock, fcntl.LOCK_EX):
            pid = os.pread(lock, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(lock)
            raise StoreBusy(
                f"Another server (pid {pid}) has {self._path} open. Stop it, or give this one a file of its "
                "own in store.path."
            )
        self._held.append(lock)
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)

    def register(self) -> None:
        """Let others see that this process lives."""
        lock = _file(self._directory / f"{self.own}.lock")
        self._held.append(lock)
        fcntl.flock(lock, fcntl.LOCK_EX)  # waits at most for one who looks whether it is taken
        os.pwrite(lock, str(os.getpid()).encode(), 0)

    def leave(self) -> None:
        """Let go of every lock."""
        with suppress(OSError):
            (self._directory / f"{self.own}.lock").unlink(missing_ok=True)
        while self._held:
            os.close(self._held.pop())

    def others(self) -> set[str]:
        """Return the other processes that live."""
        found = {file.stem for file in self._directory.glob("*.lock")} - {self.own}
        return found - self.dead(found)

    def dead(self, processes: Iterable[str]) -> set[str]:
        """Return which of them do not live."""
        return {one for one in processes if one != self.own and not self._lives(one)}

    def forget_the_dead(self) -> None:
        """Delete the files of the dead: no file says the same. Only while `opening`."""
        for one in self.dead(file.stem for file in self._directory.glob("*.lock")):
            (self._directory / f"{one}.lock").unlink(missing_ok=True)

    def _lives(self, process: str) -> bool:
        try:
            lock = os.open(self._directory / f"{process}.lock", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            # A shared lock: two that look at once do not take each other for the living.
            return not _taken(lock, fcntl.LOCK_SH)
        finally:
            os.close(lock)


def _file(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _taken(lock: int, how: int) -> bool:
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
