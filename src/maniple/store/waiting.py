"""Waiting that cancellation cannot leave half-done."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """Return what `work` returns, done in a thread.

    A thread cannot be cancelled: a caller that is cancelled meanwhile is so when the work is done, and
    nothing then runs behind its back.
    """
    return await finished(asyncio.get_running_loop().run_in_executor(None, work))


async def to_the_end(steps: Coroutine[Any, Any, T]) -> T:
    """Return the result of steps that belong together: a caller's cancellation waits for the last one."""
    return await finished(asyncio.ensure_future(steps))


async def finished(future: asyncio.Future[T]) -> T:
    """Return the result of what goes on anyway; a caller that is cancelled meanwhile is so afterwards."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not future.cancelled():
            future.exception()  # else asyncio complains that nobody looked
        raise cancelled
    return future.result()
