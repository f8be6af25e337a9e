"""How the program ends: its signals, and its exit status with an error message."""

import asyncio
import errno
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from maniple.cli.text import clean
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


FORCED_EXIT = 130
_PATIENCE_SECONDS = 5.0


@contextmanager
def cancelling(cancel: Callable[[], None], say: Callable[[str], None]) -> Iterator[None]:
    """Let the first Ctrl-C call `cancel`, and a second one end the program.

    The second cancels the current task, so that child processes are ended on the way out, and leaves the
    hard way should that take over five seconds. Must be entered in a task of a running loop.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    previous = signal.getsignal(signal.SIGINT)
    presses = 0

    def pressed() -> None:
        nonlocal presses
        presses += 1
        if presses == 1:
            say("Cancelling the run … Ctrl-C again quits at once.")
            cancel()
        elif presses == 2 and task is not None:
            say("Quitting without waiting for the run to end.")
            _leave_after(_PATIENCE_SECONDS)
            task.cancel()
        else:
            os._exit(FORCED_EXIT)

    loop.add_signal_handler(signal.SIGINT, pressed)
    try:
        yield
    finally:
        # With two presses the handler stays: a third must not have to wait for the cleaning up.
        if presses < 2:
            loop.remove_signal_handler(signal.SIGINT)
            signal.signal(signal.SIGINT, previous)


def _leave_after(seconds: float) -> None:
    timer = threading.Timer(seconds, os._exit, (FORCED_EXIT,))
    timer.daemon = True
    timer.start()


@contextmanager
def silent_keyboard() -> Iterator[None]:
    """Keep what is typed while a run is shown from the screen; it is there for the next prompt."""
    import termios

    if sys.stdin is None or not sys.stdin.isatty():
        yield
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    silent = list(before)
    silent[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal may have been closed meanwhile
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)


if TYPE_CHECKING:
    pass


@contextmanager
def loading() -> Iterator[None]:
    """Let no garbage be collected meanwhile, and keep what was made out of every later collection.

    What modules make stays, and there is so much of it that looking through it again and again takes a
    third of the time (https://docs.python.org/3/library/gc.html#gc.freeze).
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
