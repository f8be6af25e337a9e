"""A session on another machine: files mirrored, output cut, time limited, and nothing left when it ends.

What differs between the services is a `Machine`; what they have in common is here.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import FileError, SandboxError
from maniple.sandbox.backend import Completed, OnOutput
from maniple.sandbox.mirror import Mirror, RemoteFiles
from maniple.sandbox.output import Capture
from maniple.sandbox.workspace import FileHead, Workspace

MAX_FIGURES = 10
MAX_FIGURE_BYTES = 5_000_000
# What an SDK does for each piece takes the event loop's time, and nothing of so much would be kept.
_FLOOD_BYTES = 4_000_000
_STOP_SECONDS = 10
_FIGURES_LOOKED_AT = 1000
LOST = "The Python process was ended, so variables and imports are gone; the files are still there."


class Flood(Exception):
    """A call printed more than a host should listen to; raised out of `Output.hear`."""


class Output:
    """What one call prints, as it arrives."""

    def __init__(self, limit_bytes: int, on_output: OnOutput | None) -> None:
        self._captures = {"stdout": Capture(limit_bytes), "stderr": Capture(limit_bytes)}
        self._on_output = on_output
        self._heard = 0

    @property
    def is_flooded(self) -> bool:
        """Whether it has been too much altogether."""
        return self._heard > _FLOOD_BYTES

    def hear(self, stream: Literal["stdout", "stderr"], text: str) -> None:
        """Take a piece of text; raises `Flood` when it has been too much altogether."""
        data = text.encode(errors="replace")
        self._heard += len(data)
        self._captures[stream].data_received(data)
        if self._on_output is not None:
            self._on_output(stream, text)
        if self.is_flooded:
            raise Flood

    def text(self, stream: Literal["stdout", "stderr"]) -> str:
        """What was printed there, its middle cut."""
        return self._captures[stream].text()


@dataclass(frozen=True, slots=True)
class End:
    """How a call ended by itself. `figures` are PNG files."""

    exit_code: int
    value: str = ""
    figures: tuple[bytes, ...] = ()


class Machine(RemoteFiles, Protocol):
    """One sandbox of a service. Raises `SandboxError`, with what to do, when it fails or is gone."""

    async def python(self, code: str, output: Output) -> End:
        """Run code with the variables of the calls before."""
        ...

    async def bash(self, command: str, output: Output) -> End:
        """Run a command; when cancelled, it is killed before this returns."""
        ...

    async def restart_python(self) -> None:
        """End whatever Python does, and its variables with it."""
        ...

    async def stay(self) -> None:
        """Put off the time at which the service ends a machine that nobody uses."""
        ...

    async def close(self) -> None:
        """End the machine and everything on it; a machine that is gone already is no error."""
        ...


class RemoteSession:
    """A thread's session on a machine of a service."""

    def __init__(self, machine: Machine, workspace: Workspace, settings: SandboxSettings) -> None:
        self._machine = machine
        self._workspace = workspace
        self._settings = settings
        self._mirror = Mirror(workspace, machine, settings.disk_mb * 1_000_000)
        self._stopping: asyncio.Task[None] | None = None

    @property
    def is_alive(self) -> bool:
        """Whether it can take another call."""
        return self._stopping is None

    async def run_python(self, code: str, *, on_output: OnOutput | None = None) -> Completed:
        """Run Python code where its variables are."""
        return await self._run(lambda output: self._machine.python(code, output), on_output, python=True)

    async def run_bash(self, command: str, *, on_output: OnOutput | None = None) -> Completed:
        """Run a command of bash in a process of its own."""
        return await self._run(lambda output: self._machine.bash(command, output), on_output, python=False)

    async def read(self, path: str, limit_bytes: int) -> FileHead:
        """The first bytes of a file, as the last call left it."""
        return await asyncio.to_thread(self._workspace.read, path, limit_bytes)

    async def write(self, path: str, content: bytes) -> None:
        """Make or replace a file; the next call sees it."""
        await asyncio.to_thread(self._workspace.write, path, content)

    async def list(self, limit: int) -> list[tuple[str, int]]:
        """(path, bytes) of up to `limit` files."""
        return await asyncio.to_thread(self._workspace.files, limit)

    async def stop(self) -> None:
        """End the machine, and wait for that; a second time does nothing."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._close())
        await asyncio.shield(self._stopping)

    async def _run(
        self, work: Callable[[Output], Coroutine[Any, Any, End]], on_output: OnOutput | None, *, python: bool
    ) -> Completed:
        if not self.is_alive:
            raise SandboxError("The sandbox has ended; run the code again for a new one.")
        try:
            return await self._mirrored(work, Output(self._settings.output_bytes, on_output), python)
        except BaseException:  # nobody knows what still runs there, so nothing of it may stay
            await self.stop()
            raise

    async def _mirrored(
        self, work: Callable[[Output], Coroutine[Any, Any, End]], output: Output, python: bool
    ) -> Completed:
        await self._machine.stay()
        left = [await self._mirror.up()]
        started = time.monotonic()
        end, why = await self._ended(work(output))
        seconds = time.monotonic() - started
        if end is None and python:
            await self._machine.restart_python()
        left.append(await self._mirror.down())
        images = await self._keep(end.figures) if end is not None else ()
        return Completed(
            exit_code=137 if end is None else end.exit_code,
            stdout=output.text("stdout"),
            stderr="\n".join(filter(None, (output.text("stderr"), why if why != "timeout" else "", *left))),
            seconds=seconds,
            timed_out=why == "timeout",
            value=end.value if end is not None else "",
            images=images,
            lost=LOST if end is None and python else "",
        )

    async def _ended(self, work: Coroutine[Any, Any, End]) -> tuple[End | None, str]:
        """How the work ended, or None and why it was ended."""
        # Not asyncio.timeout: not every SDK lets a cancellation through as one.
        task = asyncio.create_task(work)
        try:
            await asyncio.wait({task}, timeout=self._settings.timeout_seconds)
            if task.done():
                return task.result(), ""
        except Flood:
            return None, f"[stopped: it printed more than {_FLOOD_BYTES} bytes]"
        finally:
            await _cancel(task)
        return None, "timeout"

    async def _keep(self, figures: tuple[bytes, ...]) -> tuple[str, ...]:
        """Write figures beside those that are there; one that does not fit is left out."""
        if not figures:
            return ()
        taken = {path for path, _ in await self.list(_FIGURES_LOOKED_AT)}
        free = (name for number in range(1, 10_000) if (name := f"figures/figure-{number}.png") not in taken)
        kept: list[str] = []
        for name, figure in zip(free, figures[:MAX_FIGURES], strict=False):
            try:
                await self.write(name, figure)
            except FileError:
                continue
            kept.append(name)
        return tuple(kept)

    async def _close(self) -> None:
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._machine.close()
        except TimeoutError:
            # The service ends a machine that nobody uses by itself.
            return


async def _cancel(task: asyncio.Task[End]) -> None:
    task.cancel()
    await asyncio.wait({task}, timeout=_STOP_SECONDS)
    if task.done() and not task.cancelled():
        task.exception()  # looked at: what it failed with while it was being ended is of no interest


@asynccontextmanager
async def ended_unless_ready(end: Callable[[], Awaitable[Any]]) -> AsyncIterator[None]:
    """End a new machine again, by `end`, when it cannot be prepared."""
    try:
        yield
    except BaseException:  # a cancellation, too, must not leave a machine that costs money
        await asyncio.shield(end())
        raise
