"""What a sandbox does, whichever technique is behind it."""

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Completed:
    """What one call left behind.

    `stdout` and `stderr` are decoded UTF-8, already cut to the output limit with a line that names
    what is missing. `exit_code` is the shell's: 128 plus the number for a process ended by a signal.
    """

    exit_code: int
    stdout: str
    stderr: str
    seconds: float
    timed_out: bool = False

    def text(self) -> str:
        """The call in the words that a model reads."""
        parts = [self.stdout.rstrip("\n")] if self.stdout.strip() else []
        if self.stderr.strip():
            parts.append("[stderr]\n" + self.stderr.rstrip("\n"))
        if self.timed_out:
            until_then = "above is what it printed until then" if parts else "it had printed nothing"
            parts.append(f"[timeout: stopped after {self.seconds:.0f} seconds; {until_then}]")
        elif self.exit_code:
            parts.append(f"[exit code {self.exit_code}{_signal_name(self.exit_code)}]")
        return "\n".join(parts) or "[no output; print what you want to see]"


def _signal_name(exit_code: int) -> str:
    known = {128 + number: f", {number.name}" for number in signal.Signals}
    return known.get(exit_code, "")


class Sandbox(Protocol):
    """Runs untrusted code with `workspace` as its current and only lasting directory.

    Code that fails is a result, not an error. Raises `SandboxError` when the sandbox itself could
    not run it. A cancelled call leaves no process behind.
    """

    async def run_python(self, code: str, *, workspace: Path) -> Completed: ...

    async def run_bash(self, command: str, *, workspace: Path) -> Completed: ...
