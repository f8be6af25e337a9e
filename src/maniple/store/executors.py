"""Blocking work in threads, and work that a cancellation cannot leave half done."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from maniple.errors import StoreError

T = TypeVar("T")


async def run_in_thread(work: Callable[[], T]) -> T:
    """Return the result of `work`, which runs in a thread.

    A thread cannot be cancelled: a cancelled caller waits until the work is done, so that nothing runs
    behind its back.
    """
    return await wait_for_completion(asyncio.get_running_loop().run_in_executor(None, work))


async def run_to_completion(steps: Coroutine[Any, Any, T]) -> T:
    """Return the result of `steps`; the cancellation of the caller takes effect after the last step."""
    return await wait_for_completion(asyncio.ensure_future(steps))


async def wait_for_completion(future: asyncio.Future[T]) -> T:
    """Return the result of `future`; the cancellation of the caller takes effect when it is done."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not future.cancelled():
            future.exception()  # else asyncio logs that the exception was never retrieved
        raise cancelled
    return future.result()


class UncancellableFuture(asyncio.Future[T]):
    """The result of work that cannot be stopped."""

    def cancel(self, msg: Any | None = None) -> bool:
        """Refuse. The waiting task keeps its cancellation and raises it after the work."""
        return False


class SingleThreadExecutor:
    """Runs functions one after another in one thread, until `close`.

    A call costs a third of that of `concurrent.futures.ThreadPoolExecutor`.
    """

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[tuple[UncancellableFuture[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._is_open = True
        Thread(target=self._run, name=name, daemon=True).start()

    def submit(self, work: Callable[[], T]) -> UncancellableFuture[T]:
        """Return the future of `work`, which runs even if never awaited. Raises `StoreError` if closed."""
        if not self._is_open:
            raise StoreError("The store is closed. Nothing can be read or written.")
        future: UncancellableFuture[T] = UncancellableFuture(loop=asyncio.get_running_loop())
        self._queue.put((future, work))
        return future

    def close(self) -> None:
        """End the thread after the work that was submitted."""
        self._is_open = False
        self._queue.put(None)

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            _run_work(*item)
            del item  # else the references live until the next item comes


def _run_work(future: UncancellableFuture[Any], work: Callable[[], Any]) -> None:
    try:
        report = partial(future.set_result, work())
    except BaseException as error:  # noqa: BLE001 (raised where the result is awaited)
        report = partial(future.set_exception, error)
    with suppress(RuntimeError):  # the loop is closed: no caller waits any more
        future.get_loop().call_soon_threadsafe(report)
