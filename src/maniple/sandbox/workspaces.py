"""One workspace per thread, and beside each, out of reach of sandboxed code, what is known of it."""

import hashlib
import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from maniple.errors import FileError
from maniple.sandbox.account import give_away
from maniple.sandbox.folder import TO_CHANGE, open_folder
from maniple.sandbox.history import History
from maniple.sandbox.removal import remove_tree
from maniple.sandbox.uploads import Uploads
from maniple.sandbox.workspace import BESIDE, Workspace
from maniple.types import Unavailable

_READABLE_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_UNIQUE_KEY = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Files:
    """What is in a workspace: `found` are (path beneath `folder`, bytes), sorted."""

    folder: Path
    found: tuple[tuple[str, int], ...]


class Workspaces:
    """Hands out the workspaces beneath `root`, which is made with the first of them.

    `earlier` is where those of several databases lay: one that is only there is used there, if its key is an
    id that only one of them can have given out.
    """

    def __init__(
        self,
        root: Path,
        earlier: Path | None = None,
        *,
        max_file_bytes: int = 10_000_000,
        max_bytes: int | None = None,
    ) -> None:
        self._root = root.absolute()
        self._earlier = earlier.absolute() if earlier is not None else None
        self._max_file_bytes = max_file_bytes
        self._max_bytes = max_bytes

    def open(self, key: str) -> Workspace:
        """The workspace of a thread, made when it is missing, open to its owner; any text is a valid key.

        Blocks on disk.
        """
        workspace = self.of(key)
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            workspace.path.mkdir(mode=0o700, exist_ok=True)
            give_away(workspace.path)
            # Code may have closed it, to the session after its own, too.
            os.close(open_folder(workspace.path, needed=TO_CHANGE))
        except OSError as error:
            raise FileError(f"{workspace.path} could not be made: {error.strerror}.") from error
        return workspace

    def files(self, key: str, limit: int) -> Files:
        """The files of a thread's workspace, which is not made for that. Blocks on disk."""
        workspace = self.of(key)
        return Files(workspace.path, tuple(workspace.files(limit)))

    def history(self, key: str) -> History:
        """What the editor changed there, to be taken back."""
        return History(self._beside(key) / "edits")

    def uploads(self, key: str) -> Uploads:
        """What the user put there; the workspace is not made for that."""
        return Uploads(self.of(key), self._beside(key) / "uploads")

    def discard_if_empty(self, key: str) -> None:
        """Remove a workspace in which nothing is; any other is the user's and stays. Blocks on disk."""
        with suppress(OSError):
            self.of(key).path.rmdir()
            shutil.rmtree(self._beside(key))
            self._beside(key).parent.rmdir()

    def remove(self, key: str) -> None:
        """Remove a workspace with all that is in it; links are removed and not followed. Blocks on disk."""
        for folder in (self._beside(key), self.of(key).path):
            try:
                remove_tree(folder)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise FileError(f"{folder} could not be removed: {error.strerror}.") from error

    def obstacle(self) -> Unavailable | None:
        """What keeps workspaces from being made, as far as that shows without making one. Blocks on disk."""
        nearest = next(path for path in (self._root, *self._root.parents) if os.path.lexists(path))
        if os.access(f"{nearest}/.", os.W_OK | os.X_OK):  # the dot: a file, too, is an obstacle
            return None
        reason = f"{nearest} cannot be written, so there is no place for the team's files."
        return Unavailable(reason, "let data_dir in conf.yaml, or MANIPLE_DATA_DIR, be a folder of yours.")

    def of(self, key: str) -> Workspace:
        """The workspace of a thread, which need not be there."""
        return Workspace(self._root_of(key) / _directory_name(key), self._max_file_bytes, self._max_bytes)

    def _beside(self, key: str) -> Path:
        # No key's directory begins with a dot.
        return self._root_of(key) / BESIDE / _directory_name(key)

    def _root_of(self, key: str) -> Path:
        earlier = self._earlier
        if earlier is None or not _UNIQUE_KEY.fullmatch(key) or (self._root / key).exists():
            return self._root
        return earlier if (earlier / key).is_dir() else self._root


def _directory_name(key: str) -> str:
    """A harmless key stays readable on disk; the hash of any other starts with what no such key has."""
    if _READABLE_KEY.fullmatch(key):
        return key
    return "~" + hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()
