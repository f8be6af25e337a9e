"""One process at a time."""

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

_POLL_SECONDS = 0.25
_SOON_SECONDS = 0.01


@asynccontextmanager
async def file_lock(path: Path, while_waiting: Callable[[], None]) -> AsyncIterator[None]:
    """Hold `path` locked; `while_waiting` is called a few times a second as long as another process holds it.

    The kernel gives the lock back when its holder dies. The file stays, because removing it would let two
    processes lock two files of the same name. Raises OSError where the folder cannot be written.
    """
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    try:
        while not _try_lock(descriptor):
            while_waiting()
            await asyncio.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def file_lock_within(path: Path, seconds: float) -> Iterator[None]:
    """Hold `path` locked, for what takes no time; raises `TimeoutError` where others hold it for so long.

    Blocks. Also keeps out the other threads of this process. Raises OSError like `file_lock`.
    """
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    last = time.monotonic() + seconds
    try:
        while not _try_lock(descriptor):
            if time.monotonic() > last:
                raise TimeoutError(f"{path} is held by another program.")
            time.sleep(_SOON_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
