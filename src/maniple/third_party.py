"""Protection against code of third parties that blocks the event loop or exits the process."""

import asyncio
import contextvars
import functools
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from maniple.errors import ToolFailure
from maniple.text import describe_exception

MAX_THREADS = 32
"""The limit of concurrent blocking calls. A timed-out call keeps its thread, which Python cannot end."""
_NAME = "maniple guest"
_REASON_CHARACTERS = 200
# A task that raises one of these ends the event loop, and with it the service.
_EXIT_ERRORS = (SystemExit, KeyboardInterrupt)


def in_thread(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Return an async version of a blocking function; each call runs in its own thread.

    asyncio's thread pool is not used: a few calls that never end would fill it and keep the program from
    exiting. A call raises `ToolFailure` if `MAX_THREADS` calls are running, or if the function tries to exit
    the process.
    """

    @functools.wraps(function)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        if sum(thread.name == _NAME for thread in threading.enumerate()) >= MAX_THREADS:
            raise ToolFailure(f"{MAX_THREADS} third-party calls have not ended yet; go on without it.")
        call = functools.partial(contextvars.copy_context().run, function, *args, **kwargs)
        outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        threading.Thread(target=_run_in_thread, args=(outcome, call), name=_NAME, daemon=True).start()
        return await outcome

    return awaited


def shield_from_exit(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Return an async function that raises `ToolFailure` if `function` tries to exit the process."""

    @functools.wraps(function)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        try:
            return await function(*args, **kwargs)
        except _EXIT_ERRORS as error:
            raise _exit_attempt(error) from error

    return awaited


def _run_in_thread(outcome: "asyncio.Future[Any]", call: Callable[[], Any]) -> None:
    result, failure = None, None
    try:
        result = call()
    except _EXIT_ERRORS as error:
        failure = _exit_attempt(error)
    except BaseException as error:  # noqa: BLE001 - passed to the caller, also exits
        failure = error
    with suppress(RuntimeError):  # the loop is closed, because the program ends
        outcome.get_loop().call_soon_threadsafe(_set_outcome, outcome, result, failure)


def _set_outcome(outcome: "asyncio.Future[Any]", result: Any, failure: BaseException | None) -> None:
    if outcome.done():  # the caller was cancelled
        return
    if failure is None:
        outcome.set_result(result)
    elif isinstance(failure, StopIteration) or not isinstance(failure, Exception):
        # A future accepts no StopIteration, and with a CancelledError the caller would count as cancelled.
        outcome.set_exception(RuntimeError(describe_exception(failure, _REASON_CHARACTERS)))
    else:
        outcome.set_exception(failure)


def _exit_attempt(error: BaseException) -> ToolFailure:
    return ToolFailure(f"It wanted to end the whole program ({error!r}), which it may not.")
