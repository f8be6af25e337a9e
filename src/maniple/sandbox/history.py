"""What files were before they were edited, kept outside of the workspace and over restarts."""

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from maniple.errors import FileError
from maniple.sandbox.beneath import DRAFT, components
from maniple.sandbox.workspace import Workspace

STEPS_OF_A_FILE = 20
STEPS = 500
KEPT_BYTES = 20_000_000
EDITED_BYTES = 2_000_000
_GONE = "-"
_LOCK = "lock"

Edit = Callable[[bytes | None], bytes]
"""From what a file holds, None when there is none, to what it is to hold."""


@dataclass(frozen=True, slots=True)
class Step:
    """One edit: what the file held before (None: there was none), and the SHA-256 of what it held then."""

    file: Path
    before: bytes | None
    after: str


@dataclass(frozen=True, slots=True)
class History:
    """The edits of one thread, a file each, the oldest dropped first. Every method blocks on disk.

    An edit is kept before it is made: a crash in between leaves a step that changed nothing, which `undo`
    skips.
    """

    folder: Path

    def change(self, workspace: Workspace, path: str, edit: Edit) -> bytes | None:
        """Edit a file and return what it held before; raises `FileError`, then nothing is changed.

        Edits of one thread come one after another, whichever process makes them.
        """
        with self._locked():
            _refuse_laid(workspace, path)
            before = _held(workspace, path)
            self._make(workspace, path, before, edit(before))
            return before

    def write(self, workspace: Workspace, path: str, content: bytes) -> None:
        """Replace whatever has this name; the way back to what is too large to be kept is lost."""
        with self._locked():
            _refuse_laid(workspace, path)
            if workspace.is_missing(path):
                self._make(workspace, path, None, content)
            elif workspace.size(path) in range(EDITED_BYTES + 1):
                self._make(workspace, path, _held(workspace, path), content)
            else:
                workspace.write(path, content)
                for file in self._files(_mark(path)):
                    file.unlink(missing_ok=True)

    def undo(self, workspace: Workspace, path: str) -> tuple[bytes, bytes | None]:
        """Take the newest edit of a file back; return what it held until now and what it holds again.

        Raises `FileError` when there is none, or the file was changed by other means since.
        """
        with self._locked():
            held = _held(workspace, path)
            for step in self._steps(path):
                if _digest(held) == step.after and held is not None:
                    if step.before is None:
                        workspace.delete(path)
                    else:
                        workspace.write(path, step.before)
                    step.file.unlink(missing_ok=True)
                    return held, step.before
                if held != step.before:
                    raise FileError(
                        f"{path!r} was changed by other means since its newest edit, so that is not undone. "
                        "View it and change it as it is now."
                    )
                step.file.unlink(missing_ok=True)
        raise FileError(f"There is no edit of {path!r} to undo.")

    def _make(self, workspace: Workspace, path: str, before: bytes | None, after: bytes) -> None:
        kept = self._keep(path, before, after)
        try:
            workspace.write(path, after)
        except FileError:
            kept.unlink(missing_ok=True)
            raise

    def _steps(self, path: str) -> Iterator[Step]:
        """Yield the steps of a file, newest first."""
        for file in reversed(self._files(_mark(path))):
            after, _, rest = file.read_bytes().partition(b"\n")
            existed, _, before = rest.partition(b"\n")
            yield Step(file, None if existed == _GONE.encode() else before, after.decode())

    def _keep(self, path: str, before: bytes | None, after: bytes) -> Path:
        files = self._files()
        number = int(files[-1].name.partition("-")[0]) + 1 if files else 1
        file = self.folder / f"{number:012}-{_mark(path)}"
        draft = self.folder / f"{DRAFT}{os.urandom(8).hex()}"
        head = f"{_digest(after)}\n{_GONE if before is None else '+'}\n".encode()
        try:
            with draft.open("wb") as target:
                target.write(head + (before or b""))
                target.flush()
                os.fsync(target.fileno())
            draft.rename(file)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise FileError(f"{path!r} is unchanged: its undo cannot be kept, {error.strerror}.") from error
        self._tidy(path)
        return file

    def _tidy(self, path: str) -> None:
        for file in self._files(_mark(path))[:-STEPS_OF_A_FILE]:
            file.unlink(missing_ok=True)
        left, kept = KEPT_BYTES, 0
        for file in reversed(self._files()):
            left, kept = left - file.stat().st_size, kept + 1
            if kept > 1 and (left < 0 or kept > STEPS):
                file.unlink(missing_ok=True)

    def _files(self, mark: str = "") -> list[Path]:
        return sorted(
            file for file in self.folder.iterdir() if file.name[0].isdigit() and file.name.endswith(mark)
        )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise FileError(f"Nothing can be edited: {self.folder}: {error.strerror}.") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _refuse_laid(workspace: Workspace, path: str) -> None:
    if workspace.is_laid(path):
        raise FileError(f"{path!r} is only to be read, as the files of skills are; write to another name.")


def _held(workspace: Workspace, path: str) -> bytes | None:
    """Return a file's content; None where nothing is. What cannot be read is refused."""
    if workspace.is_missing(path):
        return None
    head = workspace.read(path, EDITED_BYTES)
    if head.size > EDITED_BYTES:
        raise FileError(f"{path!r} has {head.size} bytes, too many to be edited; work on it with code.")
    return head.content


def _mark(path: str) -> str:
    return hashlib.sha256("/".join(components(path)).encode()).hexdigest()[:16]


def _digest(content: bytes | None) -> str:
    return hashlib.sha256(content or b"").hexdigest()
