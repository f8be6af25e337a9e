"""The host's end of what it says to a session's worker, and what the worker says to it.

Whoever runs inside can say anything here, so nothing that is heard is more than a claim of that session
about itself. Frames are described in `worker.py`.
"""

import asyncio
import json
import marshal
import os
import re
import secrets
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from importlib.util import MAGIC_NUMBER
from typing import Any, Literal, cast

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import SandboxError
from maniple.sandbox.backend import ExecutionResult, OnOutput
from maniple.sandbox.host import standalone_program
from maniple.sandbox.processes import OutputPipe, ProcessTree
from maniple.sandbox.workspaces import FileHead, Workspace

_FIGURE = re.compile(r"figures/figure-[0-9]{1,9}\.png")
_MOST_FIGURES = 10
_KEYS = {
    frozenset({"ready"}),
    frozenset({"died"}),
    frozenset({"id", "exit_code"}),
    frozenset({"id", "interrupted"}),
    frozenset({"id", "exit_code", "value", "images"}),
}
GRACE_SECONDS = 2.0
"""How long code may take to end when it has been interrupted; half-way it is interrupted again."""
_LAST_WORDS_SECONDS = 1.0
_GONE = "variables and background processes are gone; files are kept."
_KILLED = 137
_START_SECONDS = 20.0
_FRAME_OVERHEAD_BYTES = 65_536


class InvalidFrameError(ValueError):
    """No worker of ours would say this."""


@dataclass(frozen=True, slots=True)
class WorkerMessage:
    """What a worker says; which fields are set depends on what about."""

    call: str = ""
    exit_code: int | None = None
    value: str = ""
    images: tuple[str, ...] = ()
    died: int | None = None
    ready: bool = False
    interrupted: bool = False


def parse_message(content: bytes) -> WorkerMessage:
    """Read a frame from inside; raises `Forged` for anything that a worker does not say."""
    try:
        said = json.loads(content.decode())
    except (ValueError, RecursionError):
        raise InvalidFrameError("no JSON") from None
    if not isinstance(said, dict) or frozenset(said) not in _KEYS:
        raise InvalidFrameError("no frame of a worker")
    return WorkerMessage(
        call=_text(said.get("id", "")),
        exit_code=_code(said["exit_code"]) if "exit_code" in said else None,
        value=_text(said.get("value", "")),
        images=_figures(said.get("images", [])),
        died=_code(said["died"]) if "died" in said else None,
        ready="ready" in said,
        interrupted="interrupted" in said,
    )


class WorkerChannel(asyncio.Protocol):
    """Hands each frame to `heard`, and calls `broken` at the first one that is none, with what it was."""

    def __init__(
        self, limit_bytes: int, heard: Callable[[WorkerMessage], None], broken: Callable[[str], None]
    ) -> None:
        self._limit_bytes = limit_bytes
        self._heard = heard
        self._broken = broken
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have its methods and not its name.
        self._transport = cast(asyncio.Transport, transport)

    def say(self, *words: str) -> None:
        """Send a frame; the last of the words may have lines. What nobody hears is lost."""
        if self._transport is None or self._transport.is_closing():
            return
        content = "\n".join(words).encode(errors="backslashreplace")
        self._transport.write(len(content).to_bytes(4, "big") + content)

    def close(self) -> None:
        """Say and hear no more."""
        self._heard, self._broken = _ignore, _ignore
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 4:
            length = int.from_bytes(self._received[:4], "big")
            if length > self._limit_bytes:
                self._break(f"a message of {length} bytes")
                return
            if len(self._received) < 4 + length:
                return
            content = bytes(self._received[4 : 4 + length])
            del self._received[: 4 + length]
            try:
                said = parse_message(content)
            except InvalidFrameError as error:
                self._break(str(error))
                return
            self._heard(said)

    def _break(self, why: str) -> None:
        broken = self._broken
        self.close()
        self._received.clear()
        broken(why)


@dataclass(frozen=True, slots=True)
class WorkerConnection:
    """The host's ends of a worker: two channels, two pipes."""

    control: WorkerChannel
    calls: WorkerChannel
    out: OutputPipe
    err: OutputPipe


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidFrameError("no text")
    # Halves of characters can be written in JSON and nowhere else.
    return value.encode(errors="replace").decode()


def _code(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= 255:
        raise InvalidFrameError("no exit code")
    return value


def _figures(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > _MOST_FIGURES:
        raise InvalidFrameError("no list of figures")
    if not all(isinstance(path, str) and _FIGURE.fullmatch(path) for path in value):
        raise InvalidFrameError("no figure")
    return tuple(value)


def _ignore(anything: object) -> None:
    """Hear nothing."""


Verb = Literal["python", "bash"]


@dataclass(frozen=True, slots=True)
class _Call:
    id: str
    verb: Verb
    answer: asyncio.Future[WorkerMessage]


class WorkerSession:
    """Speaks with `worker.py`; whatever the worker does, the host loses no more than the session."""

    def __init__(self, tree: ProcessTree, settings: SandboxSettings, workspace: Workspace) -> None:
        self._tree = tree
        self._settings = settings
        self._workspace = workspace
        self._lines: WorkerConnection | None = None
        self._call: _Call | None = None
        self._interrupts = 0
        self._has_died = False
        self._calm = asyncio.Event()
        self._ready = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None
        self._farewells: list[Callable[[], object]] = []
        self.ending = ""
        """Why the session has ended, for the model; nothing while it lives."""
        tree.ended.add_done_callback(lambda _: self._end(f"The sandbox ended: {_GONE}"))

    @property
    def pid(self) -> int:
        """The host's id of the process from which all others descend."""
        return self._tree.pid

    @property
    def is_alive(self) -> bool:
        return not self.ending

    def at_end(self, farewell: Callable[[], object]) -> None:
        """Call `farewell` once, when the session has ended."""
        self._farewells.append(farewell)

    def overrun(self, reason: str) -> None:
        """Stop everything because of a limit; the call under way, or the next one, tells the reason."""
        self._end(reason)

    def heard(self, said: WorkerMessage) -> None:
        """Take a claim from inside."""
        call = self._call
        if said.ready and not self._ready.is_set():
            self._ready.set()
        elif said.died is not None and not self._has_died:
            self._mourn(said.died)
        elif call is None or said.call != call.id or said.ready:
            self.broken("an answer to nothing")
        elif said.interrupted and self._interrupts:
            self._interrupts -= 1
            if not self._interrupts:
                self._calm.set()
        elif said.exit_code is not None and not call.answer.done():
            call.answer.set_result(said)
        else:
            self.broken("a second answer")

    def broken(self, what: str) -> None:
        """Stop a session whose worker says what ours never does."""
        self._end(f"The worker in the sandbox sent {what}, so it was stopped: {_GONE}")

    def attach(self, lines: WorkerConnection) -> None:
        """Speak through `lines` from now on, and close them at the end."""
        self._lines = lines

    async def wait_until_ready(self, timeout_seconds: float) -> bool:
        """Wait until the worker can take calls; whether it can."""
        ready = asyncio.ensure_future(self._ready.wait())
        try:
            await asyncio.wait(
                {ready, self._tree.ended}, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            ready.cancel()
        return self._ready.is_set() and self.is_alive

    async def run_python(self, code: str, *, on_output: OnOutput | None = None) -> ExecutionResult:
        return await self._run("python", f"{self._settings.output_bytes // 4}\n{code}", on_output)

    async def run_bash(self, command: str, *, on_output: OnOutput | None = None) -> ExecutionResult:
        return await self._run("bash", command, on_output)

    async def read(self, path: str, limit_bytes: int) -> FileHead:
        return await asyncio.to_thread(self._workspace.read, path, limit_bytes)

    async def write(self, path: str, content: bytes) -> None:
        await asyncio.to_thread(self._workspace.write, path, content)

    async def list(self, limit: int) -> list[tuple[str, int]]:
        return await asyncio.to_thread(self._workspace.files, limit)

    async def stop(self) -> None:
        self._end(f"The sandbox was stopped: {_GONE}")
        cancelled: asyncio.CancelledError | None = None
        while self._stopping is not None and not self._stopping.done():
            try:
                await asyncio.shield(self._stopping)
            except asyncio.CancelledError as cancellation:  # passed on when all has ended, in a few seconds
                cancelled = cancellation
        if cancelled is not None:
            raise cancelled

    def last_words(self) -> str:
        """What has been printed and belongs to no call."""
        if self._lines is None:
            return ""
        return (self._lines.out.take() + self._lines.err.take()).strip()

    async def _run(self, verb: Verb, text: str, on_output: OnOutput | None) -> ExecutionResult:
        if self._lines is None or not self.is_alive:
            raise SandboxError(f"The session has ended; begin another. {self.ending}".strip())
        began = time.monotonic()
        lines = self._lines
        lines.out.listen(on_output and (lambda piece: on_output("stdout", piece)))
        lines.err.listen(on_output and (lambda piece: on_output("stderr", piece)))
        self._call = call = _Call(secrets.token_hex(8), verb, asyncio.get_running_loop().create_future())
        try:
            (lines.calls if verb == "python" else lines.control).say(call.id, verb, text)
            await asyncio.wait({call.answer}, timeout=self._settings.timeout_seconds)
            timed_out = not call.answer.done()
            if timed_out:
                await self._interrupt(call, lines.control)
            if not self.is_alive:
                await self.stop()
        except BaseException:  # a cancelled call leaves nothing behind
            await self.stop()
            raise
        finally:
            self._call = None
        return self._completed(call, lines, time.monotonic() - began, timed_out)

    def _completed(
        self, call: _Call, lines: WorkerConnection, seconds: float, timed_out: bool
    ) -> ExecutionResult:
        said = call.answer.result() if call.answer.done() else WorkerMessage(exit_code=_KILLED)
        return ExecutionResult(
            exit_code=_KILLED if said.exit_code is None else said.exit_code,
            stdout=lines.out.take(),
            stderr=lines.err.take(),
            seconds=seconds,
            timed_out=timed_out,
            value=said.value[: self._settings.output_bytes],
            images=said.images,
            lost=self.ending,
        )

    async def _interrupt(self, call: _Call, control: WorkerChannel) -> None:
        """End a call and keep the session, or end both."""
        if call.verb == "bash":
            control.say(call.id, "kill", "")
            await asyncio.wait({call.answer}, timeout=GRACE_SECONDS)
        else:
            for _ in range(2):
                self._interrupts += 1
                self._calm.clear()
                control.say(call.id, "interrupt", "")
                await asyncio.wait({call.answer}, timeout=GRACE_SECONDS / 2)
                if call.answer.done():
                    break
        if not call.answer.done():
            self._end(f"It could not be interrupted, so everything was stopped: {_GONE}")
        elif self._interrupts and self.is_alive:
            # One that is still on its way would hit the next call.
            try:
                async with asyncio.timeout(_LAST_WORDS_SECONDS):
                    await self._calm.wait()
            except TimeoutError:
                self.broken("nothing when it was interrupted")

    def _mourn(self, exit_code: int) -> None:
        self._has_died = True
        sentence = f"The Python process ended: {_GONE}"
        call = self._call
        if call is not None and call.verb == "bash" and not call.answer.done():
            # Who ran the command may still want its end.
            call.answer.add_done_callback(lambda _: self._end(sentence))
            return
        if call is not None and not call.answer.done():
            call.answer.set_result(WorkerMessage(exit_code=exit_code))
        self._end(sentence)

    def _end(self, why: str) -> None:
        if self.ending:
            return
        self.ending = why
        if self._call is not None and not self._call.answer.done():
            self._call.answer.set_result(WorkerMessage(exit_code=_KILLED))
        self._stopping = asyncio.get_running_loop().create_task(self._settle())

    async def _settle(self) -> None:
        lines = self._lines
        if lines is not None:
            lines.control.close()
            lines.calls.close()
        await self._tree.kill()
        if lines is not None:
            lines.out.listen(None)
            lines.err.listen(None)
            # The last holder of a pipe closes it by dying; one in an uninterruptible call may not.
            await asyncio.wait({lines.out.ended, lines.err.ended}, timeout=_LAST_WORDS_SECONDS)
            lines.out.close()
            lines.err.close()
        for farewell in self._farewells:
            farewell()


Command = Callable[[int, int], Sequence[str]]
"""The argument vector, given the descriptors CONTROL and CALLS of `worker.py`."""


@dataclass(frozen=True, slots=True)
class WorkerLaunch:
    """How the program is started; `inherited` are descriptors that it needs beside those of the worker."""

    command: Command
    inherited: Iterable[int] = ()
    environment: dict[str, str] = field(default_factory=dict)
    why_not: Callable[[str], str] = str
    """Makes a sentence of what a program printed that did not become a worker."""


@cache
def read_worker_sources() -> dict[str, bytes]:
    """The texts of `worker.py` and `interpreter.py` by name. Blocks on disk the first time."""
    return {name: standalone_program(name).read_bytes() for name in ("worker.py", "interpreter.py")}


def compile_worker(python: str, folder: str) -> dict[str, bytes]:
    """`worker` and `interpreter` by the names that they are to have in `folder`, in this order.

    Compiled where that Python reads what this one compiles: it starts in half the time. Blocks.
    """
    sources = read_worker_sources()
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


async def start_worker(
    launch: WorkerLaunch, settings: SandboxSettings, workspace: Workspace
) -> WorkerSession:
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
    launch: WorkerLaunch, settings: SandboxSettings, workspace: Workspace
) -> tuple[WorkerSession, list[tuple[WorkerChannel, socket.socket]]]:
    """The session of a program that has been started, and the channels that are still to be connected."""
    with ExitStack() as theirs, ExitStack() as ours:
        sockets: list[socket.socket] = []
        inside: list[int] = []
        outputs: list[OutputPipe] = []
        written: list[int] = []
        for _ in range(2):
            end, end_inside = socket.socketpair()
            sockets.append(ours.enter_context(end))
            inside.append(theirs.enter_context(end_inside).fileno())
            reading, writing = os.pipe()
            theirs.callback(os.close, writing)
            written.append(writing)
            outputs.append(OutputPipe(reading, settings.output_bytes))
            ours.callback(outputs[-1].close)
        control, calls = inside
        tree = ProcessTree(
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
    channels = [WorkerChannel(limit_bytes, session.heard, session.broken) for _ in sockets]
    session.attach(WorkerConnection(channels[0], channels[1], outputs[0], outputs[1]))
    return session, list(zip(channels, sockets, strict=True))
