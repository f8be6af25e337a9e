"""Starts a program that becomes a worker, and gives the host's ends of its sockets and pipes to a session."""

import asyncio
import marshal
import os
import socket
import subprocess
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from importlib.util import MAGIC_NUMBER

from maniple.config.settings import SandboxSettings
from maniple.errors import SandboxError
from maniple.sandbox.channel import Channel
from maniple.sandbox.output import Output
from maniple.sandbox.process import Tree
from maniple.sandbox.session import Lines, WorkerSession
from maniple.sandbox.workspace import Workspace

_START_SECONDS = 20.0
_FRAME_OVERHEAD_BYTES = 65_536

Command = Callable[[int, int], Sequence[str]]
"""The argument vector, given the descriptors CONTROL and CALLS of `worker.py`."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How the program is started; `inherited` are descriptors that it needs beside those of the worker."""

    command: Command
    inherited: Iterable[int] = ()
    environment: dict[str, str] = field(default_factory=dict)
    why_not: Callable[[str], str] = str
    """Makes a sentence of what a program printed that did not become a worker."""


@cache
def worker_sources() -> dict[str, bytes]:
    """The texts of `worker.py` and `interpreter.py` by name. Blocks on disk the first time."""
    folder = resources.files("maniple.sandbox")
    return {name: folder.joinpath(name).read_bytes() for name in ("worker.py", "interpreter.py")}


def worker_files(python: str, folder: str) -> dict[str, bytes]:
    """`worker` and `interpreter` by the names that they are to have in `folder`, in this order.

    Compiled where that Python reads what this one compiles: it starts in half the time. Blocks.
    """
    sources = worker_sources()
    if _magic_number(python) != MAGIC_NUMBER:
        return sources
    header = MAGIC_NUMBER + bytes(12)
    return {
        f"{name}c": header + marshal.dumps(compile(text, f"{folder}/{name}", "exec", dont_inherit=True))
        for name, text in sources.items()
    }


def _magic_number(python: str) -> bytes:
    command = "import sys, _frozen_importlib_external as i; sys.stdout.buffer.write(i.MAGIC_NUMBER)"
    arguments = [python, "-I", "-S", "-c", command]
    try:
        return subprocess.run(arguments, env={}, capture_output=True, check=False, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return b""  # the sandbox will say what is wrong with it


async def start_worker(launch: Launch, settings: SandboxSettings, workspace: Workspace) -> WorkerSession:
    """Start it and wait until it can take calls; raises `SandboxError` when it cannot."""
    try:
        session, ends = _launched(launch, settings, workspace)
    except OSError as error:
        raise SandboxError(f"The sandbox could not be started: {error}") from error
    loop = asyncio.get_running_loop()
    try:
        for channel, end in ends:
            await loop.connect_accepted_socket(lambda channel=channel: channel, end)
        ready = await session.wait_until_ready(_START_SECONDS)
    except BaseException:  # a cancelled start leaves nothing behind
        await session.stop()
        for _, end in ends:
            end.close()
        raise
    if not ready:
        await session.stop()
        raise SandboxError(launch.why_not(session.last_words()))
    return session


def _launched(
    launch: Launch, settings: SandboxSettings, workspace: Workspace
) -> tuple[WorkerSession, list[tuple[Channel, socket.socket]]]:
    """The session of a program that has been started, and the channels that are still to be connected."""
    with ExitStack() as theirs, ExitStack() as ours:
        sockets: list[socket.socket] = []
        inside: list[int] = []
        outputs: list[Output] = []
        written: list[int] = []
        for _ in range(2):
            end, end_inside = socket.socketpair()
            sockets.append(ours.enter_context(end))
            inside.append(theirs.enter_context(end_inside).fileno())
            reading, writing = os.pipe()
            theirs.callback(os.close, writing)
            written.append(writing)
            outputs.append(Output(reading, settings.output_bytes))
            ours.callback(outputs[-1].close)
        control, calls = inside
        tree = Tree(
            launch.command(control, calls),
            out=written[0],
            err=written[1],
            inherited=(control, calls, *launch.inherited),
            environment=launch.environment,
        )
        ours.pop_all()
    session = WorkerSession(tree, settings, workspace)
    # The longest way to write one character in JSON takes six bytes.
    limit_bytes = 6 * settings.output_bytes + _FRAME_OVERHEAD_BYTES
    channels = [Channel(limit_bytes, session.heard, session.broken) for _ in sockets]
    session.attach(Lines(channels[0], channels[1], outputs[0], outputs[1]))
    return session, list(zip(channels, sockets, strict=True))
