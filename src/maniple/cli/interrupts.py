"""Ctrl-C while a run is under way: the run's first, then the program's."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

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
