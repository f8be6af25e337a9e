"""One process at a time."""

import asyncio
import fcntl
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
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


@asynccontextmanager
async def held_lock(lock: AbstractContextManager[None]) -> AsyncIterator[None]:
    """Hold a lock that blocks while others have it, and that no thread owns; raises what taking it raises.

    A caller that is cancelled while it waits never has the lock.
    """
    taken: Future[None] = Future()
    done = threading.Event()
    # A thread of its own: the body may need those of the event loop's pool, which has few.
    threading.Thread(target=_hold, args=(lock, taken, done), name="lock", daemon=True).start()
    try:
        await asyncio.wrap_future(taken)
        yield
    finally:
        done.set()


def _hold(lock: AbstractContextManager[None], taken: Future[None], done: threading.Event) -> None:
    try:
        with lock:
            if taken.set_running_or_notify_cancel():
                taken.set_result(None)
                done.wait()
    except Exception as error:  # noqa: BLE001 - raised where the lock is awaited
        if not taken.done():
            taken.set_exception(error)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
