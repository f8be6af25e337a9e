"""What every technique of running untrusted code offers, and what one call leaves behind."""

import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from maniple.sandbox.workspaces import FileHead, Workspace

OnOutput = Callable[[Literal["stdout", "stderr"], str], None]
"""Hears what a call prints, piece by piece, on the event loop; it must not block."""

SILENCE = "[no output; print what you want to see]"
# Of what is shorter, a model learns nothing, and the same call would never have the same result twice.
_WORTH_TELLING_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """What one call left behind.

    `stdout` and `stderr` are decoded UTF-8, already cut to the output limit with a line that names
    what is missing. `exit_code` is the shell's: 128 plus the number for a process ended by a signal;
    Python code that raised has 1.
    """

    exit_code: int
    stdout: str
    stderr: str
    seconds: float
    timed_out: bool = False
    value: str = ""
    """The last expression of Python code, as `repr` writes it, cut; nothing for None."""
    images: tuple[str, ...] = ()
    """Workspace paths of the figures (PNG) that the code drew."""
    lost: str = ""
    """A sentence for the model when variables and background processes are gone."""

    def text(self, silence: str = SILENCE) -> str:
        """The call in the words that a model reads; `silence` stands for one that said nothing."""
        parts = [part.rstrip("\n") for part in (self.stdout, self.value) if part.strip()]
        if self.stderr.strip():
            parts.append("[stderr]\n" + self.stderr.rstrip("\n"))
        if self.timed_out:
            until_then = "above is what it printed until then" if parts else "it had printed nothing"
            kept = "" if self.lost else "; Python's variables are kept"
            parts.append(f"[timeout: stopped after {self.seconds:.0f} seconds; {until_then}{kept}]")
        elif self.exit_code:
            parts.append(f"[exit code {self.exit_code}{_signal_name(self.exit_code)}]")
        words = "\n".join(parts) or silence
        return "\n".join(filter(None, (words, self._took(), self.lost and f"[{self.lost}]")))

    def _took(self) -> str:
        worth_telling = self.seconds > _WORTH_TELLING_SECONDS and not self.timed_out
        return f"[took {self.seconds:.1f} s]" if worth_telling else ""


def _signal_name(exit_code: int) -> str:
    known = {128 + number: f", {number.name}" for number in signal.Signals}
    return known.get(exit_code, "")


class SandboxSession(Protocol):
    """A thread's place: Python keeps its variables, bash has a process of its own for each call.

    Both work in the same files. Code that fails is a result, not an error; `SandboxError` says that the
    sandbox itself failed, `FileError` that a file could not be read or written. One call at a time. A
    cancelled call stops the session: nothing of it is left.
    """

    @property
    def is_alive(self) -> bool:
        """Whether it can take another call."""
        ...

    async def run_python(self, code: str, *, on_output: OnOutput | None = None) -> ExecutionResult: ...

    async def run_bash(self, command: str, *, on_output: OnOutput | None = None) -> ExecutionResult: ...

    async def read(self, path: str, limit_bytes: int) -> FileHead:
        """The first bytes of a file."""
        ...

    async def write(self, path: str, content: bytes) -> None:
        """Make or replace a file."""
        ...

    async def list(self, limit: int) -> list[tuple[str, int]]:
        """(path, bytes) of up to `limit` files."""
        ...

    async def stop(self) -> None:
        """End every process of it, and wait for their end; a second time does nothing."""
        ...


class SandboxBackend(Protocol):
    """A technique; `name` is what `sandbox.backend` in the settings calls it."""

    @property
    def name(self) -> str: ...

    async def start(self, workspace: Workspace) -> SandboxSession:
        """Begin a session in a thread's files; raises `SandboxError` with what to do."""
        ...
