"""The workspaces of all threads, in one folder, with the records that their code cannot access."""

import hashlib
import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from maniple.errors import FileError, Unavailable
from maniple.workspace.account import give_away
from maniple.workspace.files import Workspace
from maniple.workspace.mirrors import MIRROR_FOLDERS, Mirrors
from maniple.workspace.safe_open import TO_CHANGE, open_folder, remove_tree
from maniple.workspace.uploads import UploadStore

BESIDE = ".beside"
"""The folder of the records, next to the workspaces; no workspace's name begins with a dot."""
_MIRRORS = "mirrors"
_READABLE_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class WorkspaceListing:
    """The content of a workspace: `found` are (path in `folder`, bytes), sorted."""

    folder: Path
    found: tuple[tuple[str, int], ...]


class Workspaces:
    """Hands out the workspaces in `root`, which is created with the first of them."""

    def __init__(
        self,
        root: Path,
        *,
        max_file_bytes: int = 10_000_000,
        max_bytes: int | None = None,
        copies: bool = False,
    ) -> None:
        """`copies` is for a backend without mounts: mirrors are then also files of the workspace."""
        self._root = root.absolute()
        self._max_file_bytes = max_file_bytes
        self._max_bytes = max_bytes
        self._copies = copies

    def open(self, key: str) -> Workspace:
        """Return the workspace of a thread and create it if missing.

        Any text is a valid key. Blocks on disk.
        """
        workspace = self.locate(key)
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            workspace.path.mkdir(mode=0o700, exist_ok=True)
            give_away(workspace.path)
            # Code may have closed it to the next session.
            os.close(open_folder(workspace.path, needed=TO_CHANGE))
        except OSError as error:
            raise FileError(f"{workspace.path} could not be created: {error.strerror}.") from error
        return workspace

    def files(self, key: str, limit: int) -> WorkspaceListing:
        """List a thread's workspace without creating it. Blocks on disk."""
        workspace = self.locate(key)
        return WorkspaceListing(workspace.path, tuple(workspace.files(limit)))

    def uploads(self, key: str) -> UploadStore:
        """Return the uploads of a workspace without creating it."""
        return UploadStore(self.locate(key), self.records(key) / "uploads")

    def discard_if_empty(self, key: str) -> None:
        """Remove an empty workspace; any other stays. Blocks on disk."""
        path = self.locate(key).path
        with suppress(OSError):
            if any(self.locate(key).files(1)):
                return
            for name in MIRROR_FOLDERS:
                with suppress(OSError):
                    (path / name).rmdir()
            path.rmdir()
            shutil.rmtree(self.records(key))
            self.records(key).parent.rmdir()

    def remove(self, key: str) -> None:
        """Remove a workspace and its content; links are removed and not followed. Blocks on disk."""
        for folder in (self.records(key), self.locate(key).path):
            try:
                remove_tree(folder)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise FileError(f"{folder} could not be removed: {error.strerror}.") from error

    def check_writable(self) -> None:
        """Raise `Unavailable` if workspaces cannot be created. Creates none. Blocks on disk."""
        nearest = next(path for path in (self._root, *self._root.parents) if os.path.lexists(path))
        if os.access(f"{nearest}/.", os.W_OK | os.X_OK):  # the dot makes this fail for a file
            return
        reason = f"{nearest} cannot be written, so there is no folder for the team's files."
        raise Unavailable(
            reason, "set data_dir in conf.yaml, or MANIPLE_DATA_DIR, to a folder that you can write."
        )

    def locate(self, key: str) -> Workspace:
        """Return the workspace of a thread, which may not exist."""
        mirrors = Mirrors(self.records(key) / _MIRRORS, self._copies)
        path = self._root / _directory_name(key)
        return Workspace(path, self._max_file_bytes, self._max_bytes, mirrors)

    def records(self, key: str) -> Path:
        """Return the folder of the records of a workspace, which may not exist."""
        # No directory of a key begins with a dot.
        return self._root / BESIDE / _directory_name(key)


def _directory_name(key: str) -> str:
    """Return a safe key itself, else its hash behind a tilde, with which no safe key begins."""
    if _READABLE_KEY.fullmatch(key):
        return key
    return "~" + hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()
