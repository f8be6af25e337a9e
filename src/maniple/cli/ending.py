"""How the program ends: its exit status, with words where something went wrong."""

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any

from maniple.cli.untrusted import clean
from maniple.errors import ConfigError, ManipleError

USAGE = 2
CANCELLED = 130
_SIGNAL_BASE = 128


def run_to_status(work: Coroutine[Any, Any, int]) -> int:
    """Run `work` and return the status it gives, or the one for how it ended.

    1 for an error that is told, 2 for bad settings, 128 plus its number for a signal; SIGTERM and SIGHUP
    cancel the work first, so that child processes end with it.
    """
    ended_by: list[signal.Signals] = []
    try:
        return asyncio.run(_until_signal(work, ended_by))
    except ConfigError as error:
        return _complain(error, USAGE)
    except ManipleError as error:
        return _complain(error, 1)
    except BrokenPipeError:
        _forget_output()
        return _SIGNAL_BASE + signal.SIGPIPE
    except (KeyboardInterrupt, asyncio.CancelledError):
        return _SIGNAL_BASE + ended_by[0] if ended_by else CANCELLED


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


def _complain(error: ManipleError, status: int) -> int:
    from rich.console import Console
    from rich.text import Text

    Console(stderr=True).print(Text(clean(str(error)), style="bold red"), soft_wrap=True)
    return status


def _forget_output() -> None:
    """Keep Python from complaining, when it ends, that nobody reads its output any more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(nowhere, stream.fileno())
