"""The files of a conversation: those that the user attaches, and those that runs write."""

import asyncio
import hashlib
import os
import stat
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from maniple.cli.text import one_line
from maniple.errors import FileError
from maniple.text import counted, file_size
from maniple.workspace import (
    StoredUpload,
    Workspace,
    WorkspaceListing,
    Workspaces,
    clean_file_name,
    group_files,
    is_cache,
)
from maniple.workspace.mirrors import is_mirror, is_team_record
from maniple.workspace.safe_open import MAX_DEPTH

_LISTED_FILES = 20
_SCANNED_FILES = 2_000
_ALL_FILES_HINT = "To list every file, enter /files all."
MAX_FOLDER_FILES = 1_000
_GENERATED_FOLDERS = frozenset({"__pycache__", "node_modules", "venv"})
_NAMED_SKIPS = 5


@dataclass(frozen=True, slots=True)
class FolderContent:
    """The files of a folder, by their paths in the workspace, and what is left out of it."""

    name: str
    """The folder in the workspace."""
    files: Sequence[tuple[str, Path]]
    skipped: Sequence[str]

    def describe_skipped(self) -> str:
        """Return a sentence about what was left out; "" for nothing."""
        if not self.skipped:
            return ""
        named = ", ".join(one_line(one, 60) for one in self.skipped[:_NAMED_SKIPS])
        more = f" and {len(self.skipped) - _NAMED_SKIPS} more" if len(self.skipped) > _NAMED_SKIPS else ""
        return f" Left out, because hidden or generated: {named}{more}. Attach such a file by its own path."


class Attachments:
    """The files in the workspaces of a session's threads."""

    def __init__(self, workspaces: Workspaces) -> None:
        self.workspaces = workspaces
        self._listed: dict[str, set[tuple[str, int]]] = {}
        self._used: set[str] = set()
        self._given: dict[str, set[str]] = {}
        """By thread: where the files of the user were before the run."""

    async def track(self, thread_id: str) -> None:
        """Note that the thread has a run, so that its workspace is not removed with its files."""
        self._listed.setdefault(thread_id, set())
        self._used.add(thread_id)
        given = await asyncio.to_thread(self.workspaces.uploads(thread_id).list_uploads)
        self._given[thread_id] = {one.path for one in given}

    async def add(self, thread_id: str, path: Path) -> StoredUpload:
        """Copy a file of the user into the workspace, replacing one of the same name; raises `FileError`."""
        stored = await asyncio.to_thread(self._copy, thread_id, path)
        self._listed.setdefault(thread_id, set()).add((stored.upload.path, stored.upload.size))
        return stored

    async def add_folder(self, thread_id: str, path: Path) -> tuple[FolderContent, list[StoredUpload]]:
        """Copy a folder of the user into the workspace; raises `FileError`, and then nothing is copied."""
        content, stored = await asyncio.to_thread(self._copy_folder, thread_id, path)
        listed = self._listed.setdefault(thread_id, set())
        listed.update((one.upload.path, one.upload.size) for one in stored)
        return content, stored

    async def all_files(self, thread_id: str, *, each: bool = False) -> list[str]:
        """Return lines that list the files of a thread; no line if there are none.

        Of many, folders are counted, unless `each` file is wanted.
        """
        files = await asyncio.to_thread(self.workspaces.files, thread_id, _SCANNED_FILES)
        found = tuple(file for file in files.found if not is_cache(file[0]))
        if not found:
            return []
        lines = list(
            _file_lines(WorkspaceListing(files.folder, found), len(found) if each else _LISTED_FILES)
        )
        return lines if each or len(found) <= _LISTED_FILES else [*lines, _ALL_FILES_HINT]

    async def new_files(self, thread_id: str, since: float = 0) -> list[str]:
        """Return lines that list what the team wrote or moved since Unix time `since` and the last call.

        Written files are new or have another size. A file that the user attached is listed where it was
        moved to, or with other content.
        """
        folder, new = await asyncio.to_thread(self._new_files, thread_id, since)
        return list(_file_lines(WorkspaceListing(folder, tuple(new)))) if new else []

    def _new_files(self, thread_id: str, since: float) -> tuple[Path, list[tuple[str, int]]]:
        workspace = self.workspaces.locate(thread_id)
        listed = self._listed.setdefault(thread_id, set())
        # What the team stores for itself, such as the last report for the next run, is no result of this one.
        new = sorted(
            (path, size)
            for path, size, changed in workspace.list_newest(_SCANNED_FILES)
            if changed / 1e9 >= since and (path, size) not in listed
            if not (is_cache(path) or is_team_record(path))
        )
        listed.update(new)
        # Files of the user that were moved, and moved back, have changed and are still theirs.
        uploads = self.workspaces.uploads(thread_id).list_uploads() if new else []
        given = self._given.get(thread_id)
        stayed = {one.path: one.sha256 for one in uploads if given is None or one.path in given}
        made = [one for one in new if one[0] not in stayed or _digest(workspace, one[0]) != stayed[one[0]]]
        return workspace.path, made

    def discard_unused(self) -> None:
        """Remove empty workspaces, and those whose thread never had a run. Blocks on disk."""
        for thread_id in self._listed:
            if thread_id in self._used:
                self.workspaces.discard_if_empty(thread_id)
            else:
                with suppress(FileError):
                    self.workspaces.remove(thread_id)

    def _copy(self, thread_id: str, path: Path) -> StoredUpload:
        with _open_regular_file(path) as source:
            self.workspaces.open(thread_id)
            [stored] = self.workspaces.uploads(thread_id).add([(path.name, source)])
            return stored

    def _copy_folder(self, thread_id: str, path: Path) -> tuple[FolderContent, list[StoredUpload]]:
        content = read_folder(path)
        self.workspaces.open(thread_id)
        try:
            return content, self.workspaces.uploads(thread_id).add_folder(content.files)
        except OSError as error:
            raise FileError(f"{error.filename or path} cannot be read: {error.strerror}.") from error


@asynccontextmanager
async def open_attachments(workspaces: Workspaces) -> AsyncIterator[Attachments]:
    """Yield the attachments; at the end remove the workspaces that are empty or were not used."""
    attachments = Attachments(workspaces)
    try:
        yield attachments
    finally:
        # Not in a thread: while the program is being cancelled, nothing can be awaited.
        attachments.discard_unused()


def _open_regular_file(path: Path) -> BinaryIO:
    """Open a regular file; raises `FileError` for anything else."""
    try:
        file = path.expanduser()
        mode = file.stat().st_mode
        if stat.S_ISDIR(mode):
            raise FileError(f"{path} is a directory.")
        if not stat.S_ISREG(mode):
            raise FileError(f"{path} is not a regular file and cannot be attached.")
        return file.open("rb")
    except FileNotFoundError:
        raise FileError(f"{path} does not exist.") from None
    except (OSError, RuntimeError, ValueError) as error:
        # RuntimeError: `~name` without such a user; ValueError: a NUL in the name.
        raise FileError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def is_folder(path: Path) -> bool:
    """Return whether this is a folder that can be attached."""
    with suppress(OSError, RuntimeError, ValueError):
        return path.expanduser().is_dir()
    return False


def read_folder(path: Path) -> FolderContent:
    """Return the files of a folder and of those below it, by their paths in the workspace.

    Left out are hidden files and folders, folders that programs generate, and special files. Links within the
    folder are followed to files. Blocks on disk. Raises `FileError` for links that lead out of it, for two
    files of one name, and if there are no files or too many.
    """
    try:
        root = path.expanduser().resolve()
        found = _FolderScan(path, root)
        found.scan(root, ())
    except (OSError, RuntimeError, ValueError) as error:
        raise FileError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if not found.files:
        raise FileError(
            f"{path} has no files to attach.{FolderContent('', (), found.skipped).describe_skipped()}"
        )
    top = clean_file_name(root.name or "folder")
    if any(is_mirror(f"{top}/{name}") for name in found.files):
        top = f"{top}-attached"  # the team's own records have these names
    files = [(f"{top}/{name}", file) for name, file in sorted(found.files.items())]
    return FolderContent(top, files, found.skipped)


@dataclass(slots=True)
class _FolderScan:
    """Collects the files of the folder `root`, which the user gave as `path`."""

    path: Path
    root: Path
    files: dict[str, Path] = field(default_factory=dict[str, Path])
    folders: dict[str, Path] = field(default_factory=dict[str, Path])
    skipped: list[str] = field(default_factory=list[str])

    def scan(self, folder: Path, above: tuple[str, ...]) -> None:
        """Add the files of a folder; `above` are its names in the workspace, below `root`."""
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                here = (*above, clean_file_name(entry.name))
                if entry.name.startswith(".") or not (target := self._target(entry)):
                    self._skip(entry)
                elif not entry.is_dir():
                    self._add("/".join(here), target)
                elif entry.name in _GENERATED_FOLDERS or entry.is_symlink():
                    self._skip(entry)  # what a link within the folder leads to is attached at its own place
                elif len(here) >= MAX_DEPTH - 1:
                    raise FileError(f"{entry.path} has too many folders above it ({MAX_DEPTH} at most).")
                else:
                    self._add_folder("/".join(here), Path(entry.path))
                    self.scan(Path(entry.path), here)

    def _target(self, entry: "os.DirEntry[str]") -> Path | None:
        """Return the file or folder itself; None for a special file and for a link to nothing."""
        target = Path(entry.path)
        if entry.is_symlink():
            try:
                target = target.resolve()
            except RuntimeError:  # it leads to itself
                return None
            if not target.is_relative_to(self.root):
                where = Path(entry.path).relative_to(self.root)
                raise FileError(
                    f"{self.path / where} is a link that leads out of {self.path}. Remove the link."
                )
        return target if target.is_dir() or target.is_file() else None

    def _skip(self, entry: "os.DirEntry[str]") -> None:
        self.skipped.append(str(Path(entry.path).relative_to(self.root)))

    def _add(self, name: str, file: Path) -> None:
        _require_free(name, file, self.files, self.folders)
        if len(self.files) >= MAX_FOLDER_FILES:
            raise FileError(
                f"{self.path} has more than {MAX_FOLDER_FILES} files. Attach a part of it, or an archive."
            )
        self.files[name] = file

    def _add_folder(self, name: str, folder: Path) -> None:
        _require_free(name, folder, self.files)
        self.folders[name] = folder


def _require_free(name: str, path: Path, *taken: Mapping[str, Path]) -> None:
    if other := next((one[name] for one in taken if name in one), None):
        raise FileError(f"{other} and {path} would have the same name, {name}. Rename one.")


def _digest(workspace: Workspace, path: str) -> str:
    """Return the SHA-256 of a file in hex; "" if it cannot be read."""
    with suppress(FileError), workspace.open(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # pyright: ignore[reportArgumentType]
    return ""


def _file_lines(files: WorkspaceListing, most: int = _LISTED_FILES) -> Iterator[str]:
    yield f"Files in {files.folder}:"
    groups = group_files(files.found, most)
    for one in groups[:most]:
        counted_files = f"{counted(one.files, 'file')}  " if one.is_folder else ""
        yield f"  {one_line(one.path)}  {counted_files}{file_size(one.size)}"
    if left := sum(one.files for one in groups[most:]):
        yield f"  … and {left:,} more"
