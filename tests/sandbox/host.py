"""What the host sees of sandboxed processes, without sleeping: descriptors that become readable."""

import asyncio
import ctypes
import os
import secrets
import select
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from maniple.workspace.account import give_away


def descriptors() -> set[str]:
    """This process's open ones."""
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def new_marker() -> str:
    """A word that is in the command line of exactly one process."""
    return f"marker-{secrets.token_hex(8)}"


def stubborn_daemon(marker: str) -> str:
    """Python that leaves a process in a session of its own, which holds the output and ignores signals.

    That process itself says so through the pipe `word`, so that it can be found from then on.
    """
    daemon = """
import signal
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
with open("word", "w") as word:
    word.write("started")
while True:
    signal.pause()
"""
    return f"""
import subprocess, sys
print("so far")
subprocess.Popen([sys.executable, "-c", {daemon!r}, {marker!r}], start_new_session=True)
"""


def _find_processes(marker: str) -> list[int]:
    """Host process ids of the commands whose last word is this marker."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if entry.read_bytes().endswith(f"\0{marker}\0".encode()):
                found.append(int(entry.parent.name))
    return found


@contextmanager
def watched(marker: str) -> Iterator[list[int]]:
    """Descriptors of the living processes with this marker; each is readable once its process ended."""
    descriptors = [os.pidfd_open(pid) for pid in _find_processes(marker)]
    try:
        yield descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def all_end(descriptors: list[int], within_seconds: float) -> bool:
    deadline = time.monotonic() + within_seconds
    return all(
        select.select([descriptor], [], [], max(deadline - time.monotonic(), 0))[0]
        for descriptor in descriptors
    )


@asynccontextmanager
async def word_from_inside(workspace: Path) -> AsyncIterator[asyncio.Task[str]]:
    """A task that ends when sandboxed code writes into the pipe `word` in its workspace."""
    pipe = workspace / "word"
    os.mkfifo(pipe, 0o600)
    give_away(pipe)
    descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    def read() -> str:
        readable, _, _ = select.select([descriptor], [], [], 15)
        return os.read(descriptor, 100).decode() if readable else ""

    try:
        yield asyncio.create_task(asyncio.to_thread(read))
    finally:
        os.close(descriptor)
        pipe.unlink()


_PR_SET_CHILD_SUBREAPER = 36


@contextmanager
def as_process_one() -> Iterator[Callable[[], list[str]]]:
    """Let this process inherit orphans, as a server alone in a container does; yields who has come."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def children() -> list[str]:
        return [
            child for each in Path("/proc/self/task").glob("*/children") for child in each.read_text().split()
        ]

    before = set(children())  # whatever an earlier test has left at work
    try:
        yield lambda: [child for child in children() if child not in before]
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
