"""A session with a worker of ours: calls go to it through sockets, what they print comes through pipes."""

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from maniple.config.settings import SandboxSettings
from maniple.errors import SandboxError
from maniple.sandbox.backend import Completed, OnOutput
from maniple.sandbox.channel import Channel, Said
from maniple.sandbox.output import Output
from maniple.sandbox.process import Tree
from maniple.sandbox.workspace import FileHead, Workspace

GRACE_SECONDS = 2.0
"""How long code may take to end when it has been interrupted; half-way it is interrupted again."""
_LAST_WORDS_SECONDS = 1.0
_GONE = "variables and background processes are gone; files are kept."
_KILLED = 137

Verb = Literal["python", "bash"]


@dataclass(frozen=True, slots=True)
class Lines:
    """The host's ends of a worker: two channels, two pipes."""

    control: Channel
    calls: Channel
    out: Output
    err: Output


@dataclass(frozen=True, slots=True)
class _Call:
    id: str
    verb: Verb
    answer: asyncio.Future[Said]


class WorkerSession:
    """Speaks with `worker.py`; whatever the worker does, the host loses no more than the session."""

    def __init__(self, tree: Tree, settings: SandboxSettings, workspace: Workspace) -> None:
        self._tree = tree
        self._settings = settings
        self._workspace = workspace
        self._lines: Lines | None = None
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

    def heard(self, said: Said) -> None:
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

    def attach(self, lines: Lines) -> None:
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

    async def run_python(self, code: str, *, on_output: OnOutput | None = None) -> Completed:
        return await self._run("python", f"{self._settings.output_bytes // 4}\n{code}", on_output)

    async def run_bash(self, command: str, *, on_output: OnOutput | None = None) -> Completed:
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

    async def _run(self, verb: Verb, text: str, on_output: OnOutput | None) -> Completed:
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

    def _completed(self, call: _Call, lines: Lines, seconds: float, timed_out: bool) -> Completed:
        said = call.answer.result() if call.answer.done() else Said(exit_code=_KILLED)
        return Completed(
            exit_code=_KILLED if said.exit_code is None else said.exit_code,
            stdout=lines.out.take(),
            stderr=lines.err.take(),
            seconds=seconds,
            timed_out=timed_out,
            value=said.value[: self._settings.output_bytes],
            images=said.images,
            lost=self.ending,
        )

    async def _interrupt(self, call: _Call, control: Channel) -> None:
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
            call.answer.set_result(Said(exit_code=exit_code))
        self._end(sentence)

    def _end(self, why: str) -> None:
        if self.ending:
            return
        self.ending = why
        if self._call is not None and not self._call.answer.done():
            self._call.answer.set_result(Said(exit_code=_KILLED))
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
