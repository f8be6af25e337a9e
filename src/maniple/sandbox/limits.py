"""What the processes of one sandbox may take together, and what a model reads when they take more."""

from dataclasses import dataclass

from maniple.sandbox.disk import MAX_LEVELS, DiskUse
from maniple.sandbox.usage import Usage

STOPPED = "so everything was stopped: variables are gone"
_KEPT = f"{STOPPED}, the files are still there"
_MEGABYTE = 1024**2
# Code is let into a workspace that is over its limit, to tidy up, but not at any size: each session writes
# for a moment until it is seen, and to look at ever more files takes time from all other sandboxes.
UNTIDY = 20
# bwrap, its first process, and the shell that sets the limits.
_OWN_PROCESSES = 4


@dataclass(frozen=True, slots=True)
class Limits:
    """`files` counts folders too. Each method gives a sentence for the model, or "" within the limits."""

    memory_mb: int
    processes: int
    disk_mb: int
    files: int = 20_000

    @property
    def memory_bytes(self) -> int:
        return self.memory_mb * _MEGABYTE

    @property
    def disk_bytes(self) -> int:
        return self.disk_mb * _MEGABYTE

    def too_much(self, usage: Usage) -> str:
        """Of memory or processes."""
        if usage.memory_bytes > self.memory_bytes:
            return (
                f"The code used more than {self.memory_mb} MB of memory together, {STOPPED}. "
                "Work on smaller pieces, and with fewer processes at a time."
            )
        if usage.processes > self.processes + _OWN_PROCESSES:
            return f"The code ran more than {self.processes} processes at once, {STOPPED}. Start fewer."
        return ""

    def too_full(self, found: DiskUse, unlinked_bytes: int, allowed: tuple[int, int]) -> str:
        """The workspace; `allowed` are the bytes and entries that are, for now, no overrun."""
        size, entries = allowed
        if found.too_deep:
            return f"A folder in the workspace lies below more than {MAX_LEVELS} others, {_KEPT}."
        if found.entries > entries:
            return (
                f"There are more than {self.files} files and folders in the workspace, {_KEPT}. "
                f"{self._way_out(allowed)}, and put many small things into one file."
            )
        if found.size_bytes + unlinked_bytes <= size:
            return ""
        if unlinked_bytes > found.size_bytes:
            return (
                f"Files that were removed and are still open or mapped take more than {self.disk_mb} MB, "
                f"{_KEPT}. "
                "Close files when they are removed."
            )
        return (
            f"The files in the workspace take more than {self.disk_mb} MB, {_KEPT}. "
            f"Among the largest: {_named(found)}. {self._way_out(allowed)}, and write less."
        )

    def in_flight(self) -> str:
        """Files that nobody can count."""
        return f"Files were left on their way through a socket, {_KEPT}. Receive what is sent."

    def _way_out(self, allowed: tuple[int, int]) -> str:
        if allowed[0] < UNTIDY * self.disk_bytes:
            return "Remove what is not needed"
        return (
            f"No code is run where it is {UNTIDY} times as much: ask the user to delete files of this "
            "conversation, or to begin another"
        )


def _named(found: DiskUse) -> str:
    return ", ".join(f"{path[-100:]!r} ({size / _MEGABYTE:.1f} MB)" for path, size in found.largest)
