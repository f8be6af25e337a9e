"""What the host sees of sandboxed processes, without sleeping: descriptors that become readable."""

import asyncio
import os
import secrets
import select
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from maniple.sandbox.account import give_away


def new_marker() -> str:
    """A number of seconds that only one `sleep` in the world was asked for."""
    return str(secrets.randbelow(10**9) + 10**9)


def find_processes(marker: str) -> list[int]:
    """Host process ids of the `sleep` commands with this marker."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if entry.read_bytes().split(b"\0")[:2] == [b"sleep", marker.encode()]:
                found.append(int(entry.parent.name))
    return found


@contextmanager
def watched(marker: str) -> Iterator[list[int]]:
    """Descriptors of the living processes with this marker; each is readable once its process ended."""
    descriptors = [os.pidfd_open(pid) for pid in find_processes(marker)]
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
