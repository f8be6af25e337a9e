"""The host's side of a session: it starts `standalone/worker.py` and exchanges frames with it.

Calls go through sockets, their output comes through pipes. Code inside can forge any frame, so a frame is
only a claim of that session about itself, and an invalid one ends the session. `standalone/worker.py`
describes the frames.
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
from maniple.sandbox.backend import BackgroundProcesses, ExecutionResult, OnOutput
from maniple.sandbox.host import standalone_program
from maniple.sandbox.processes import OutputPipe, ProcessTree
from maniple.workspace.files import FileHead, Workspace

# One that was drawn, or a picture of the workspace that the code has written itself.
_FIGURE = re.compile(r"(?!/|(?:.*/)?\.\.?/)[^\x00-\x1f\x7f]{1,200}\.(?:png|jpe?g|webp)", re.IGNORECASE)
_MAX_FIGURES = 10
_KEYS = {
    frozenset({"ready"}),
    frozenset({"died"}),
    frozenset({"id", "exit_code"}),
    frozenset({"id", "interrupted"}),
    frozenset({"id", "exit_code", "value", "images"}),
}
GRACE_SECONDS = 2.0
"""How long interrupted code may take to end; after half of it, the code is interrupted again."""
_SETTLE_SECONDS = 1.0
_LOST = "variables and background processes are gone; files are kept."
_KILLED = 137
_START_SECONDS = 20.0
_FRAME_OVERHEAD_BYTES = 65_536


class InvalidFrameError(ValueError):
    """Our worker never sends such a frame."""


@dataclass(frozen=True, slots=True)
class WorkerMessage:
    """A message of the worker; which fields are set depends on its kind."""

    call: str = ""
    exit_code: int | None = None
    value: str = ""
    images: tuple[str, ...] = ()
    died: int | None = None
    ready: bool = False
    interrupted: bool = False


def parse_message(content: bytes) -> WorkerMessage:
    """Parse a frame from the worker; raises `InvalidFrameError` for anything that a worker does not send."""
    try:
        fields = json.loads(content.decode())
    except (ValueError, RecursionError):
        raise InvalidFrameError("invalid JSON") from None
    if not isinstance(fields, dict) or frozenset(fields) not in _KEYS:
        raise InvalidFrameError("an unknown frame")
    return WorkerMessage(
        call=_text(fields.get("id", "")),
        exit_code=_code(fields["exit_code"]) if "exit_code" in fields else None,
        value=_text(fields.get("value", "")),
        images=_figures(fields.get("images", [])),
        died=_code(fields["died"]) if "died" in fields else None,
        ready="ready" in fields,
        interrupted="interrupted" in fields,
    )


class WorkerChannel(asyncio.Protocol):
    """Passes each message to `on_message`.

    The first invalid frame goes to `on_invalid` with a description.
    """

    def __init__(
        self, limit_bytes: int, on_message: Callable[[WorkerMessage], None], on_invalid: Callable[[str], None]
    ) -> None:
        self._limit_bytes = limit_bytes
        self._on_message = on_message
        self._on_invalid = on_invalid
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have its methods and not its name.
        self._transport = cast(asyncio.Transport, transport)

    def send(self, *fields: str) -> None:
        """Send a frame; the last field may have several lines.

        After the end of the connection it is dropped.
        """
        if self._transport is None or self._transport.is_closing():
            return
        content = "\n".join(fields).encode(errors="backslashreplace")
        self._transport.write(len(content).to_bytes(4, "big") + content)

    def close(self) -> None:
        """Send and receive nothing more."""
        self._on_message, self._on_invalid = _ignore, _ignore
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 4:
            length = int.from_bytes(self._received[:4], "big")
            if length > self._limit_bytes:
                self._reject(f"a message of {length} bytes")
                return
            if len(self._received) < 4 + length:
                return
            content = bytes(self._received[4 : 4 + length])
            del self._received[: 4 + length]
            try:
                message = parse_message(content)
            except InvalidFrameError as error:
                self._reject(str(error))
                return
            self._on_message(message)

    def _reject(self, description: str) -> None:
        on_invalid = self._on_invalid
        self.close()
        self._received.clear()
        on_invalid(description)


@dataclass(frozen=True, slots=True)
class WorkerConnection:
    """The host's ends of the worker's two sockets and two pipes."""

    control: WorkerChannel
    calls: WorkerChannel
    out: OutputPipe
    err: OutputPipe


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidFrameError("a value that is not text")
    # JSON can contain lone surrogates, which UTF-8 cannot encode.
    return value.encode(errors="replace").decode()


def _code(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= 255:
        raise InvalidFrameError("an invalid exit code")
    return value


def _figures(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > _MAX_FIGURES:
        raise InvalidFrameError("an invalid list of figures")
    if not all(isinstance(path, str) and _FIGURE.fullmatch(path) for path in value):
        raise InvalidFrameError("an invalid figure path")
    return tuple(value)


def _ignore(anything: object) -> None:
    """Drop a message."""


Verb = Literal["python", "bash"]


@dataclass(frozen=True, slots=True)
class _Call:
    id: str
    verb: Verb
    answer: asyncio.Future[WorkerMessage]


class WorkerSession:
    """A session with a worker; no behaviour of the worker affects the host beyond this session."""

    def __init__(self, tree: ProcessTree, settings: SandboxSettings, workspace: Workspace) -> None:
        self._tree = tree
        self._settings = settings
        self._workspace = workspace
        self._lines: WorkerConnection | None = None
        self._call: _Call | None = None
        self._interrupts = 0
        self._has_died = False
        self._interrupts_answered = asyncio.Event()
        self._ready = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None
        self._end_callbacks: list[Callable[[], object]] = []
        self.background: BackgroundProcesses | None = None
        """Set by `own_namespace`."""
        self.ending = ""
        """Why the session has ended, for the model; empty while it is alive."""
        tree.ended.add_done_callback(lambda _: self._end(f"The sandbox ended: {_LOST}"))

    @property
    def pid(self) -> int:
        """The host's process id of the ancestor of all its processes."""
        return self._tree.pid

    @property
    def is_alive(self) -> bool:
        return not self.ending

    def on_end(self, callback: Callable[[], object]) -> None:
        """Call `callback` once, when the session has ended."""
        self._end_callbacks.append(callback)

    def own_namespace(self) -> None:
        """Let `background` stop and continue the processes: the worker is process 1 of their namespace."""
        send = self._send_control
        self.background = BackgroundProcesses(lambda: send("freeze"), lambda: send("thaw"))

    def stop_for_limit(self, reason: str) -> None:
        """Stop everything because of a limit; the running call, or the next one, reports the reason."""
        self._end(reason)

    def handle_message(self, message: WorkerMessage) -> None:
        """Process a message of the worker, and end the session when it is unexpected."""
        call = self._call
        if message.ready and not self._ready.is_set():
            self._ready.set()
        elif message.died is not None and not self._has_died:
            self._handle_death(message.died)
        elif call is None or message.call != call.id or message.ready:
            self.handle_invalid("an answer to no call")
        elif message.interrupted and self._interrupts:
            self._interrupts -= 1
            if not self._interrupts:
                self._interrupts_answered.set()
        elif message.exit_code is not None and not call.answer.done():
            call.answer.set_result(message)
        else:
            self.handle_invalid("a second answer")

    def handle_invalid(self, what: str) -> None:
        """Stop a session whose worker sent `what`, which ours never sends."""
        self._end(f"The worker in the sandbox sent {what}, so it was stopped: {_LOST}")

    def attach(self, lines: WorkerConnection) -> None:
        """Use `lines` from now on, and close them at the end."""
        self._lines = lines

    async def wait_until_ready(self, timeout_seconds: float) -> bool:
        """Wait until the worker accepts calls; return whether it does."""
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
        self._end(f"The sandbox was stopped: {_LOST}")
        cancelled: asyncio.CancelledError | None = None
        while self._stopping is not None and not self._stopping.done():
            try:
                await asyncio.shield(self._stopping)
            except asyncio.CancelledError as cancellation:  # passed on when all has ended, in a few seconds
                cancelled = cancellation
        if cancelled is not None:
            raise cancelled

    def take_unclaimed_output(self) -> str:
        """Return and clear the output that belongs to no call."""
        if self._lines is None:
            return ""
        return (self._lines.out.take() + self._lines.err.take()).strip()

    async def _run(self, verb: Verb, text: str, on_output: OnOutput | None) -> ExecutionResult:
        if self._lines is None or not self.is_alive:
            raise SandboxError(
                f"The session has ended; run the code again to start another. {self.ending}".strip()
            )
        began = time.monotonic()
        lines = self._lines
        lines.out.listen(on_output and (lambda piece: on_output("stdout", piece)))
        lines.err.listen(on_output and (lambda piece: on_output("stderr", piece)))
        self._call = call = _Call(secrets.token_hex(8), verb, asyncio.get_running_loop().create_future())
        try:
            (lines.calls if verb == "python" else lines.control).send(call.id, verb, text)
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

    def _send_control(self, verb: str) -> None:
        if self._lines is not None:
            self._lines.control.send("", verb, "")

    def _completed(
        self, call: _Call, lines: WorkerConnection, seconds: float, timed_out: bool
    ) -> ExecutionResult:
        message = call.answer.result() if call.answer.done() else WorkerMessage(exit_code=_KILLED)
        return ExecutionResult(
            exit_code=_KILLED if message.exit_code is None else message.exit_code,
            stdout=lines.out.take(),
            stderr=lines.err.take(),
            seconds=seconds,
            timed_out=timed_out,
            value=message.value[: self._settings.output_bytes],
            images=message.images,
            lost=self.ending,
        )

    async def _interrupt(self, call: _Call, control: WorkerChannel) -> None:
        """Interrupt a call; end the session, too, if the call does not stop."""
        if call.verb == "bash":
            control.send(call.id, "kill", "")
            await asyncio.wait({call.answer}, timeout=GRACE_SECONDS)
        else:
            for _ in range(2):
                self._interrupts += 1
                self._interrupts_answered.clear()
                control.send(call.id, "interrupt", "")
                await asyncio.wait({call.answer}, timeout=GRACE_SECONDS / 2)
                if call.answer.done():
                    break
        if not call.answer.done():
            self._end(f"It could not be interrupted, so everything was stopped: {_LOST}")
        elif self._interrupts and self.is_alive:
            # An interrupt that arrives late would hit the next call.
            try:
                async with asyncio.timeout(_SETTLE_SECONDS):
                    await self._interrupts_answered.wait()
            except TimeoutError:
                self.handle_invalid("no answer to an interrupt")

    def _handle_death(self, exit_code: int) -> None:
        self._has_died = True
        sentence = f"The Python process ended: {_LOST}"
        call = self._call
        if call is not None and call.verb == "bash" and not call.answer.done():
            # The caller of the command still needs its result.
            call.answer.add_done_callback(lambda _: self._end(sentence))
            return
        if call is not None and not call.answer.done():
            call.answer.set_result(WorkerMessage(exit_code=exit_code))
        self._end(sentence)

    def _end(self, reason: str) -> None:
        if self.ending:
            return
        self.ending = reason
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
            # A pipe closes when its last holder dies; a process in an uninterruptible system call may not.
            await asyncio.wait({lines.out.ended, lines.err.ended}, timeout=_SETTLE_SECONDS)
            lines.out.close()
            lines.err.close()
        for callback in self._end_callbacks:
            callback()


Command = Callable[[int, int], Sequence[str]]
"""Returns the argument vector for the descriptors CONTROL and CALLS of `worker.py`."""


@dataclass(frozen=True, slots=True)
class WorkerLaunch:
    """How to start the program; `inherited` are the descriptors that it needs besides those of the worker."""

    command: Command
    inherited: Iterable[int] = ()
    environment: dict[str, str] = field(default_factory=dict)
    owns_namespace: bool = False
    """Whether the worker is process 1 of a process namespace."""
    explain: Callable[[str], str] = str
    """Returns the error message for the output of a program that did not become a worker."""
    prepare: Callable[[int], object] = int
    """Called in a thread, with the process id of the leader, before the first call."""


@cache
def read_worker_sources() -> dict[str, bytes]:
    """Return the texts of `worker.py` and `interpreter.py` by name. Blocks on disk the first time."""
    return {name: standalone_program(name).read_bytes() for name in ("worker.py", "interpreter.py")}


def compile_worker(python: str, folder: str) -> dict[str, bytes]:
    """Return the files of the worker and the interpreter for `folder`, in this order, by name.

    They are compiled where that Python reads this one's bytecode, which halves the start time. Blocks.
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
        return b""  # the start of the sandbox reports what is wrong with it


async def start_worker(
    launch: WorkerLaunch, settings: SandboxSettings, workspace: Workspace
) -> WorkerSession:
    """Start a worker and wait until it accepts calls; raises `SandboxError` when it does not."""
    try:
        session, ends = _launched(launch, settings, workspace)
    except OSError as error:
        raise SandboxError(f"The sandbox could not be started: {error}") from error
    loop = asyncio.get_running_loop()
    try:
        for channel, end in ends:
            await loop.connect_accepted_socket(lambda channel=channel: channel, end)
        ready = await session.wait_until_ready(_START_SECONDS)
        if ready:
            await asyncio.to_thread(launch.prepare, session.pid)
    except BaseException:  # a cancelled start leaves nothing behind
        await session.stop()
        for _, end in ends:
            end.close()
        raise
    if not ready:
        await session.stop()
        raise SandboxError(launch.explain(session.take_unclaimed_output()))
    return session


def _launched(
    launch: WorkerLaunch, settings: SandboxSettings, workspace: Workspace
) -> tuple[WorkerSession, list[tuple[WorkerChannel, socket.socket]]]:
    """Start the program; return its session and the channels that are still to be connected."""
    with ExitStack() as theirs, ExitStack() as ours:
        sockets: list[socket.socket] = []
        worker_ends: list[int] = []
        outputs: list[OutputPipe] = []
        written: list[int] = []
        for _ in range(2):
            end, worker_end = socket.socketpair()
            sockets.append(ours.enter_context(end))
            worker_ends.append(theirs.enter_context(worker_end).fileno())
            reading, writing = os.pipe()
            theirs.callback(os.close, writing)
            written.append(writing)
            outputs.append(OutputPipe(reading, settings.output_bytes))
            ours.callback(outputs[-1].close)
        control, calls = worker_ends
        tree = ProcessTree(
            launch.command(control, calls),
            out=written[0],
            err=written[1],
            inherited=(control, calls, *launch.inherited),
            environment=launch.environment,
        )
        ours.pop_all()
    session = WorkerSession(tree, settings, workspace)
    # JSON needs at most six bytes for one character.
    limit_bytes = 6 * settings.output_bytes + _FRAME_OVERHEAD_BYTES
    channels = [WorkerChannel(limit_bytes, session.handle_message, session.handle_invalid) for _ in sockets]
    session.attach(WorkerConnection(channels[0], channels[1], outputs[0], outputs[1]))
    if launch.owns_namespace:
        session.own_namespace()
    return session, list(zip(channels, sockets, strict=True))
