"""The protocols that every sandbox backend implements, and the result of one call."""

import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from maniple.sandbox.notes import SILENCE, format_state
from maniple.workspace.files import FileHead, Workspace

OnOutput = Callable[[Literal["stdout", "stderr"], str], None]
"""Receives the output of a call piece by piece, on the event loop; it must not block."""

# A shorter time is useless to a model and would make the result of the same call differ each time.
_REPORTED_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """The result of one call.

    `stdout` and `stderr` are decoded UTF-8, already cut to the output limit, with a line that states
    how much is missing. `exit_code` is the shell's: 128 plus the number for a process ended by a signal;
    Python code that raised has 1.
    """

    exit_code: int
    stdout: str
    stderr: str
    seconds: float
    timed_out: bool = False
    value: str = ""
    """The `repr` of the last expression of Python code, cut; empty for None."""
    images: tuple[str, ...] = ()
    """Workspace paths of the figures (PNG) that the code drew."""
    lost: str = ""
    """A sentence for the model when variables and background processes were lost."""

    def text(self, silence: str = SILENCE) -> str:
        """Return the result as text for a model; `silence` replaces empty output."""
        parts = [part.rstrip("\n") for part in (self.stdout, self.value) if part.strip()]
        if self.stderr.strip():
            parts.append("[stderr]\n" + self.stderr.rstrip("\n"))
        if self.timed_out:
            until_then = "above is what it printed until then" if parts else "it had printed nothing"
            variables = "" if self.lost else "; Python's variables are kept"
            parts.append(f"[timeout: stopped after {self.seconds:.0f} seconds; {until_then}{variables}]")
        elif self.exit_code:
            parts.append(f"[exit code {self.exit_code}{_signal_name(self.exit_code)}]")
        output = "\n".join(parts) or silence
        return "\n".join(filter(None, (output, self._duration(), self.lost and format_state(self.lost))))

    def _duration(self) -> str:
        is_reported = self.seconds > _REPORTED_SECONDS and not self.timed_out
        return f"[took {self.seconds:.1f} s]" if is_reported else ""


def _signal_name(exit_code: int) -> str:
    known = {128 + number: f", {number.name}" for number in signal.Signals}
    return known.get(exit_code, "")


def _always() -> bool:
    return True


@dataclass(slots=True)
class BackgroundProcesses:
    """Controls what the calls of a session have left running."""

    freeze: Callable[[], None]
    """Stops every process until `thaw`. The next call must not begin before that."""
    thaw: Callable[[], None]
    is_busy: Callable[[], bool] = _always
    """Returns whether any process has run lately, as far as it is known."""


class SandboxSession(Protocol):
    """A thread's session: Python keeps its variables between calls, each bash command is a new process.

    Both work on the same files. Failing code is a result, not an error; `SandboxError` means that the sandbox
    itself failed, `FileError` that a file could not be read or written. Only one call runs at a time. A
    cancelled call stops the session with all its processes.
    """

    @property
    def is_alive(self) -> bool:
        """Whether the session accepts another call."""
        ...

    @property
    def background(self) -> BackgroundProcesses | None:
        """None where its processes cannot be stopped and continued."""
        ...

    async def run_python(self, code: str, *, on_output: OnOutput | None = None) -> ExecutionResult: ...

    async def run_bash(self, command: str, *, on_output: OnOutput | None = None) -> ExecutionResult: ...

    async def read(self, path: str, limit_bytes: int) -> FileHead:
        """Return the first bytes of a file."""
        ...

    async def write(self, path: str, content: bytes) -> None:
        """Create or replace a file."""
        ...

    async def list(self, limit: int) -> list[tuple[str, int]]:
        """Return (path, bytes) of up to `limit` files."""
        ...

    async def stop(self) -> None:
        """Kill every process of the session and wait for their end; a second call does nothing."""
        ...


class SandboxBackend(Protocol):
    """Starts sessions; `name` is the value of `sandbox.backend` in the settings."""

    @property
    def name(self) -> str: ...

    async def start(self, workspace: Workspace) -> SandboxSession:
        """Start a session in a workspace; raises `SandboxError` with what to do."""
        ...
