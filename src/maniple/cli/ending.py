"""How the program ends: its exit status, with words where something went wrong."""

import asyncio
import errno
import os
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from maniple.cli.untrusted import clean
from maniple.errors import ConfigError, ManipleError

USAGE = 2
CANCELLED = 130
_SIGNAL_BASE = 128
_DISK_TROUBLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class WrongUsage(ManipleError):
    """What was asked for on the command line cannot be meant."""

    code = "usage"


def run_to_status(work: Coroutine[Any, Any, int]) -> int:
    """Run `work` and return the status it gives, or the one for how it ended.

    1 for an error that is told, 2 for bad settings and wrong usage, 128 plus its number for a signal;
    SIGTERM and SIGHUP cancel the work first, so that child processes end with it.
    """
    ended_by: list[signal.Signals] = []
    try:
        status = asyncio.run(_until_signal(work, ended_by))
        flush_output()
    except (ConfigError, WrongUsage) as error:
        return _complain(str(error), USAGE)
    except ManipleError as error:
        return _complain(str(error), 1)
    except OSError as error:
        if ended_by:  # a terminal that was closed takes no farewell
            _forget_output()
            return _SIGNAL_BASE + ended_by[0]
        return status_without_output(error)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return _SIGNAL_BASE + ended_by[0] if ended_by else CANCELLED
    return status


def flush_output() -> None:
    """Write what is still to be written; Python itself has no good words when that fails at its end."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()


def status_without_output(error: OSError) -> int:
    """Return the status for a program whose output cannot be written; raises any other `error`.

    A reader that has left is no failure: nothing is said. A full disk is one.
    """
    if isinstance(error, BrokenPipeError):
        _forget_output()
        return _SIGNAL_BASE + signal.SIGPIPE
    if error.errno not in _DISK_TROUBLE:
        raise error
    try:
        what = error.filename or "The output"
        return _complain(f"{what} could not be written: {error.strerror}.", 1)
    finally:
        _forget_output()


async def _until_signal(work: Coroutine[Any, Any, int], ended_by: list[signal.Signals]) -> int:
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None

    def end(number: signal.Signals) -> None:
        ended_by.append(number)
        task.cancel()

    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end, number)
    return await work


def _complain(words: str, status: int) -> int:
    from rich.console import Console
    from rich.text import Text

    with suppress(OSError):  # there may be no place for words either
        Console(stderr=True).print(Text(clean(words), style="bold red"), soft_wrap=True)
    return status


def _forget_output() -> None:
    """Keep Python from complaining, when it ends, that its output goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(nowhere, stream.fileno())
