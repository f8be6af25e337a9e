"""The process of a command: its signals, its exit status, and the import of the frameworks."""

import asyncio
import codecs
import errno
import gc
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

from maniple.cli.text import clean
from maniple.errors import ConfigError, ManipleError

USAGE_STATUS = 2
CANCELLED_STATUS = 130
_SIGNAL_BASE = 128
_SHUTDOWN_SECONDS = 5.0
_KEY_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O.|.)?", re.S)
"""What keys such as arrows send, and the marks around pasted text."""
_ERASE_LINE = "\x15"
_MAX_KEYS = 65_536
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class WrongUsage(ManipleError):
    """The command line has values that contradict each other or name nothing."""

    code = "usage"


LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def has_uvloop() -> bool:
    """Return whether services run on uvloop, which has no version for Windows and PyPy."""
    return find_spec("uvloop") is not None


def new_service_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of a service: uvloop's, which takes less CPU for each stream, or asyncio's."""
    if not has_uvloop():
        return asyncio.new_event_loop()
    import uvloop

    return uvloop.new_event_loop()


def run_to_status(work: Coroutine[Any, Any, int], loop_factory: LoopFactory | None = None) -> int:
    """Run `work` and return its exit status, or print its error and return the status for that.

    1 is for errors, 2 for wrong settings and usage, 128 + N for signal N. SIGTERM and SIGHUP cancel the
    work first, so that child processes end with it. `loop_factory` makes the loop, by default asyncio's.
    """
    ended_by: list[signal.Signals] = []
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            status = runner.run(_until_signal(work, ended_by))
        flush_output()
    except (ConfigError, WrongUsage) as error:
        return _print_error(str(error), USAGE_STATUS)
    except ManipleError as error:
        return _print_error(str(error), 1)
    except OSError as error:
        if ended_by:  # the terminal was closed, so that nothing can be printed
            _discard_output()
            return _SIGNAL_BASE + ended_by[0]
        return status_without_output(error)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return _SIGNAL_BASE + ended_by[0] if ended_by else CANCELLED_STATUS
    return status


def flush_output() -> None:
    """Write buffered output now, so that an error is reported here and not by Python at exit."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()


def status_without_output(error: OSError) -> int:
    """Return the exit status for output that cannot be written; raises any other `error`.

    A closed reader is not reported; a full disk is.
    """
    if isinstance(error, BrokenPipeError):
        _discard_output()
        return _SIGNAL_BASE + signal.SIGPIPE
    if error.errno not in _DISK_ERRORS:
        raise error
    try:
        name = error.filename or "The output"
        return _print_error(f"{name} could not be written: {error.strerror}.", 1)
    finally:
        _discard_output()


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


def _print_error(message: str, status: int) -> int:
    from rich.console import Console
    from rich.text import Text

    with suppress(OSError):  # stderr may not be writable either
        Console(stderr=True).print(Text(clean(message), style="bold red"), soft_wrap=True)
    return status


def _discard_output() -> None:
    """Redirect output that cannot be written, so that Python reports no error at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(null, stream.fileno())


@contextmanager
def cancel_on_interrupt(cancel: Callable[[], None], note: Callable[[str], None]) -> Iterator[None]:
    """Let the first Ctrl-C call `cancel`, and the second one end the program.

    The second cancels the current task, so that child processes end too; if that takes more than five
    seconds, or at the third Ctrl-C, the process exits immediately. Must be entered in a task of a running
    loop.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    previous = signal.getsignal(signal.SIGINT)
    presses = 0

    def handle_interrupt() -> None:
        nonlocal presses
        presses += 1
        if presses == 1:
            note("Cancelling the run … Press Ctrl-C again to quit now.")
            cancel()
        elif presses == 2 and task is not None:
            note("Quitting without waiting for the run to end.")
            _force_exit_after(_SHUTDOWN_SECONDS)
            task.cancel()
        else:
            os._exit(CANCELLED_STATUS)

    loop.add_signal_handler(signal.SIGINT, handle_interrupt)
    try:
        yield
    finally:
        # After two presses the handler stays: a third must not wait for the cleanup.
        if presses < 2:
            loop.remove_signal_handler(signal.SIGINT)
            signal.signal(signal.SIGINT, previous)


def _force_exit_after(seconds: float) -> None:
    timer = threading.Timer(seconds, os._exit, (CANCELLED_STATUS,))
    timer.daemon = True
    timer.start()


def is_typing_possible() -> bool:
    """Return whether the input is a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


@contextmanager
def hide_typing() -> Iterator[None]:
    """Turn the terminal's echo off while a run is shown; what is typed goes to the next prompt."""
    import termios

    if not is_typing_possible():
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
        with suppress(termios.error):  # the terminal may have been closed
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)


class TypedLine:
    """What the user types while a run is shown: a line that Enter passes to `send`."""

    def __init__(self, send: Callable[[str], None]) -> None:
        self.text = ""
        self._send = send
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, keys: bytes) -> None:
        """Take what the terminal sends for keys; those that type nothing, such as arrows, are ignored."""
        for character in _KEY_SEQUENCE.sub("", self._decoder.decode(keys)):
            if character in "\r\n":
                line, self.text = self.text.strip(), ""
                if line:
                    self._send(line)
            elif character in "\x7f\b":
                self.text = self.text[:-1]
            elif character == _ERASE_LINE:
                self.text = ""
            elif character.isprintable():
                self.text += character


@contextmanager
def read_typing(line: TypedLine) -> Iterator[None]:
    """Pass the keys that are pressed while a run is shown to `line`; Ctrl-C still interrupts.

    Without a terminal nothing is read. Must be entered in a task of a running loop.
    """
    import termios

    if not is_typing_possible():
        yield
        return
    terminal, loop = sys.stdin.fileno(), asyncio.get_running_loop()
    before = termios.tcgetattr(terminal)
    by_key = list(before)
    by_key[3] &= ~(termios.ECHO | termios.ICANON)
    by_key[6] = [*by_key[6]]
    by_key[6][termios.VMIN], by_key[6][termios.VTIME] = 1, 0

    def read() -> None:
        try:
            keys = os.read(terminal, _MAX_KEYS)
        except OSError:
            keys = b""
        if not keys:  # the terminal was closed
            loop.remove_reader(terminal)
        line.feed(keys)

    termios.tcsetattr(terminal, termios.TCSADRAIN, by_key)
    loop.add_reader(terminal, read)
    try:
        yield
    finally:
        loop.remove_reader(terminal)
        with suppress(termios.error):  # the terminal may have been closed
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Collect no garbage meanwhile, and exclude the objects made meanwhile from every later collection.

    For the import of the frameworks, whose objects stay: collecting takes a third of its time.
    Source: https://docs.python.org/3/library/gc.html#gc.freeze
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
