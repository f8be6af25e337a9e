"""Runs a program that installs something, and tells line by line what it says."""

import asyncio
import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable
from contextlib import suppress

Command = tuple[str, ...]
_KEPT_LINES = 200


async def run(command: Command, on_line: Callable[[str], None]) -> tuple[int, str]:
    """Return the exit code and the last lines of output; `on_line` hears each on the event loop.

    Other users can read what it writes. Cancelled, it ends the program and what that started.
    """
    loop = asyncio.get_running_loop()
    try:
        process = _start(command)
    except OSError as error:
        return 127, f"error: {command[0]}: {error.strerror}"
    reading = asyncio.ensure_future(
        asyncio.to_thread(_read, process, lambda line: loop.call_soon_threadsafe(on_line, line))
    )
    try:
        return await asyncio.shield(reading)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        await reading


def _start(command: Command) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        umask=0o022,
        start_new_session=True,
    )


def _read(process: subprocess.Popen[str], tell: Callable[[str], object]) -> tuple[int, str]:
    kept: deque[str] = deque(maxlen=_KEPT_LINES)
    with process:
        for line in process.stdout or ():
            kept.append(line)
            tell(line.strip())
    return process.returncode, "".join(kept)
