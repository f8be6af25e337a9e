"""What a Chromium needs from a process sandbox; the composition root chooses one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ChromiumFolders:
    """What the process may use: everything else of this machine stays unseen."""

    root: Path
    """A folder of this launch alone, which the process does not see."""
    downloads: Path
    """Writable, at the same path inside."""
    executable: Path
    proxy: Path | None
    """The unix socket of the egress proxy, which is the whole network; None shares this machine's."""


class ChromiumIsolation(Protocol):
    """Starts Chromium in a sandbox."""

    def check(self) -> None:
        """Raise `Unavailable` if there is no sandbox here, as far as that is seen without a start.

        Blocks on disk.
        """
        ...

    def explain(self, failure: str) -> str:
        """Return the message for a sandbox that did not start, with what to do; empty for other output."""
        ...

    def build_argv(self, folders: ChromiumFolders) -> Sequence[str]:
        """Prepare `folders.root`, and return a command that takes Chromium's arguments. Blocks on disk.

        Raises:
            BrowserError: there is no sandbox here; the message says what to do.
        """
        ...

    @property
    def proxy_port(self) -> int:
        """The port on the sandbox's own loopback that leads to `ChromiumFolders.proxy`."""
        ...
