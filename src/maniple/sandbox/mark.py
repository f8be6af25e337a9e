"""What is left of a session when its server ends: the mark that there was one."""

from contextlib import suppress

from maniple.sandbox.workspace import BESIDE, Workspace


class Mark:
    """Stands beside a workspace, out of reach of its code, while variables can be lost. Blocks on disk."""

    def __init__(self, workspace: Workspace) -> None:
        path = workspace.path
        self._file = path.parent / BESIDE / path.name / "session"
        self.is_set = self._file.exists()
        """Whether a call has ended in a session of which nobody has been told that it is gone."""

    def set(self, wanted: bool) -> None:
        """Set it or take it away, as far as the disk lets itself be written."""
        # Without it, only a hint is missing.
        with suppress(OSError):
            if wanted:
                self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file.touch(mode=0o600)
            else:
                self._file.unlink(missing_ok=True)
            self.is_set = wanted
