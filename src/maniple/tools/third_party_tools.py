"""Functions of others as tools: what they do must not hold up or end the program."""

import asyncio
import contextvars
import functools
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from maniple.errors import ToolFailure

MOST_THREADS = 32
"""Blocking calls at once; one that was given up goes on in its thread, which Python cannot end."""
_NAME = "maniple guest"
# A task that raises one of these ends the event loop, and with it the service.
_DEPARTURES = (SystemExit, KeyboardInterrupt)


def in_thread(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Return a blocking function as one to be awaited, each call in a thread of its own.

    Not in asyncio's pool: six calls that never end would fill it, and the program could not end before them.
    Awaiting it raises `ToolFailure` when `MOST_THREADS` calls are under way, and for a call that wants to end
    the program.
    """

    @functools.wraps(function)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        if sum(thread.name == _NAME for thread in threading.enumerate()) >= MOST_THREADS:
            raise ToolFailure(f"{MOST_THREADS} calls of such tools have not ended yet; go on without it.")
        call = functools.partial(contextvars.copy_context().run, function, *args, **kwargs)
        outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        threading.Thread(target=_settle, args=(outcome, call), name=_NAME, daemon=True).start()
        return await outcome

    return awaited


def shield_from_exit(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Return an async function that fails with a `ToolFailure` where it wants to end the program."""

    @functools.wraps(function)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        try:
            return await function(*args, **kwargs)
        except _DEPARTURES as error:
            raise _departure(error) from error

    return awaited


def _settle(outcome: "asyncio.Future[Any]", call: Callable[[], Any]) -> None:
    result, failure = None, None
    try:
        result = call()
    except _DEPARTURES as error:
        failure = _departure(error)
    except BaseException as error:  # noqa: BLE001 - told to who awaits, whatever it is
        failure = error
    with suppress(RuntimeError):  # the loop is closed: the program ends, and nobody asks any more
        outcome.get_loop().call_soon_threadsafe(_tell, outcome, result, failure)


def _tell(outcome: "asyncio.Future[Any]", result: Any, failure: BaseException | None) -> None:
    if outcome.done():  # nobody waits any more
        return
    if failure is None:
        outcome.set_result(result)
    else:
        outcome.set_exception(failure)


def _departure(error: BaseException) -> ToolFailure:
    return ToolFailure(f"It wanted to end the whole program ({error!r}), which it may not.")
