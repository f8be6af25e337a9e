"""The real program, in a process of its own and on a terminal of its own."""

import asyncio
import fcntl
import os
import re
import signal
import struct
import sys
import termios
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO

from tests.environment import environment as environment_of
from tests.forking import forking

MAIN = Path(__file__).parents[2] / "main.py"
SERVER = Path(__file__).parents[2] / "server.py"
MANIPLE = Path(sys.executable).with_name("maniple")
CTRL_C, CTRL_D, ALT_ENTER, ENTER = "\x03", "\x04", "\x1b\r", "\r"
PROMPT = "› "
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[=>])")


def environment(folder: Path, base_url: str, **more: str) -> dict[str, str]:
    """Return the environment of a fresh user at a terminal, whose team does without a browser."""
    terminal = {"TERM": "xterm-256color", "MANIPLE_BROWSER__ENABLED": "false"}
    return environment_of(base_url, folder, **{**terminal, **more})


async def start(
    program: Path,
    *arguments: str,
    folder: Path,
    env: Mapping[str, str],
    stdin: int = DEVNULL,
    stdout: int | BinaryIO = PIPE,
) -> Process:
    """Start the program in `folder`; what it writes goes into pipes, unless its output has another place."""
    with forking():
        return await asyncio.create_subprocess_exec(
            *(sys.executable, str(program), *arguments),
            cwd=folder,
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=PIPE,
        )


async def run(
    *arguments: str, folder: Path, env: Mapping[str, str], question: str = ""
) -> tuple[int | None, str, str]:
    """Run `main.py` to its end; return its status, output and notes."""
    stdin = PIPE if question else DEVNULL
    return await _finished(await start(MAIN, *arguments, folder=folder, env=env, stdin=stdin), question)


async def maniple(*arguments: str, folder: Path, env: Mapping[str, str]) -> tuple[int | None, str, str]:
    """Run the command `maniple` to its end; return its status, output and notes."""
    return await _finished(await start(MANIPLE, *arguments, folder=folder, env=env))


async def _finished(process: Process, question: str = "") -> tuple[int | None, str, str]:
    try:
        async with asyncio.timeout(120):
            output, notes = await process.communicate(question.encode() if question else None)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, output.decode(), notes.decode()


class Terminal:
    """What a program on a pseudo-terminal shows, and its keyboard."""

    def __init__(self, master: int, process: Process) -> None:
        self.raw = ""
        self.process = process
        self._master = master
        self._changed = asyncio.Event()
        self._read_to = 0
        self._closed = False
        asyncio.get_running_loop().add_reader(master, self._read)

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    async def see(self, pattern: str, seconds: float = 60) -> str:
        """Wait until `pattern` is shown after what was seen last; return the match."""
        expression = re.compile(pattern)
        try:
            async with asyncio.timeout(seconds):
                while not (found := expression.search(self.text(), self._read_to)):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(
                f"{pattern!r} was not shown; this was: {self.text()[self._read_to :]!r}"
            ) from None
        self._read_to = found.end()
        return found[0]

    async def enter(self, line: str, shown: str, *more: str) -> None:
        """Type a line, and wait until each of the patterns is shown and then the prompt again.

        What is shown must not be in the line: a prompt is drawn anew while the line is typed, so seeing one
        says nothing before the answer was seen.
        """
        self.type(line + ENTER)
        for pattern in (shown, *more, PROMPT):
            await self.see(pattern)

    async def leave(self) -> int:
        """Leave at the prompt; return the program's status."""
        self.type(CTRL_D)
        return await self.ended()

    def text(self) -> str:
        """Everything that was written, without sequences."""
        return _SEQUENCE.sub("", self.raw)

    async def ended(self, seconds: float = 60) -> int:
        """Wait for the program's end and return its status."""
        async with asyncio.timeout(seconds):
            return await self.process.wait()

    def close(self) -> None:
        """Hang up; a second time is nothing."""
        if not self._closed:
            self._closed = True
            asyncio.get_running_loop().remove_reader(self._master)
            os.close(self._master)

    def _read(self) -> None:
        try:
            data = os.read(self._master, 65536).decode(errors="replace")
        except OSError:  # the program has gone
            asyncio.get_running_loop().remove_reader(self._master)
            return
        self.raw += data
        for _ in range(data.count("\x1b[6n")):  # prompt_toolkit asks where the cursor is
            self.type("\x1b[1;1R")
        self._changed.set()


@asynccontextmanager
async def on_terminal(
    *arguments: str, folder: Path, env: Mapping[str, str], program: Path = MAIN
) -> AsyncIterator[Terminal]:
    """Run the program on a terminal of 100 columns and 30 lines, and kill it if it is there in the end."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    with forking():
        process = await asyncio.create_subprocess_exec(
            *("setsid", "--ctty", sys.executable, str(program), *arguments),
            cwd=folder,
            env=env,
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
    os.close(slave)
    terminal = Terminal(master, process)
    try:
        yield terminal
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        terminal.close()
