"""Copies a thread's workspace for a branch, and brings the copy to its state at an earlier time.

Edits and operations of file tools are undone from their records. What code has written has no record: a file
is removed, or given its earlier content back, if it is known to be the product of a later run. Any other is
left as it is, and named.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from maniple.errors import FileError
from maniple.workspace.edit_history import EditHistory
from maniple.workspace.file_names import is_cache
from maniple.workspace.files import Workspace
from maniple.workspace.mirrors import MIRROR_FOLDERS, is_team_record
from maniple.workspace.workspaces import Workspaces

_EDITS = "edits"
_LOCK = "lock"
_MAX_FILES = 20_000
_NAMED = 5
_CLOCK_TICK_NS = 10_000_000
"""How far the times of files may be behind the clock: the kernel advances them by ticks."""
_PIECE_BYTES = 1024 * 1024

Content = tuple[str, str]
"""A file's name without its folder, and the SHA-256 (hex) of its bytes."""
ReadContent = Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class KnownProducts:
    """The stored files of runs: what `later` runs made, and what of a name there was before them.

    `earlier` are by name the SHA-256 of the contents of the runs before, and how to read each: the functions
    block, and raise `FileError` for a content that is gone.
    """

    later: Collection[Content] = ()
    earlier: Mapping[str, Mapping[str, ReadContent]] = field(
        default_factory=dict[str, Mapping[str, ReadContent]]
    )


@dataclass(slots=True)
class _Copy:
    """A copied workspace that is brought to its state at `since`, in nanoseconds."""

    workspace: Workspace
    history: EditHistory
    since: int
    unknown: list[str] = field(default_factory=list[str])
    undo_error: str = ""


def branch_workspace(
    workspaces: Workspaces, source: str, target: str, since: float, products: KnownProducts
) -> str:
    """Copy the workspace of thread `source` for `target`, as it was at the time `since` (Unix seconds).

    Return what is not as it was then, as a sentence for the user; "" if all of it is. Uploads stay. Nothing
    may work in the workspace of `source`. Blocks on disk. Raises `FileError`.
    """
    original = workspaces.locate(source)
    if not original.path.is_dir():
        return ""
    try:
        skipped = _copy_files(original, workspaces.open(target))
        _copy_records(workspaces.records(source), workspaces.records(target))
        at = int(since * 1e9) - _CLOCK_TICK_NS
        copy = _Copy(workspaces.locate(target), EditHistory.of(workspaces, target), at, skipped)
        uploads = {one.path for one in workspaces.uploads(target).list_uploads()}
        _restore(copy, products, uploads)
        _remove_later_records(workspaces.records(target), at)
    except OSError as error:
        raise FileError(f"The files of the conversation could not be copied: {error.strerror}.") from error
    return _describe(copy)


def _copy_files(source: Workspace, target: Workspace) -> list[str]:
    """Copy all files with their times; return what could not be copied."""
    # Mirrors are copied as records.
    own = Workspace(source.path, source.max_file_bytes)
    into = Workspace(target.path, target.max_file_bytes)
    skipped: list[str] = []
    for entry in own.tree(""):
        try:
            own.copy_into(into, entry)
        except FileError:
            skipped.append(entry.path)
    return skipped


def _copy_records(source: Path, target: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.copytree(
            source, target, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns(_LOCK)
        )


def _restore(copy: _Copy, products: KnownProducts, uploads: Collection[str]) -> None:
    changed = {
        path: stamp
        for path, stamp in _stamps(copy.workspace).items()
        if stamp >= copy.since and path not in uploads
    }
    _undo_edits(copy)
    stamps = _stamps(copy.workspace)
    for path, stamp in sorted(changed.items()):
        # What the undo has written has another time now.
        if stamps.get(path) != stamp or is_cache(path):
            continue
        if is_team_record(path):
            (copy.workspace.path / path).unlink(missing_ok=True)
        else:
            _restore_product(copy, path, products)


def _stamps(workspace: Workspace) -> dict[str, int]:
    own = Workspace(workspace.path, workspace.max_file_bytes)
    return {path: stamp for path, _, stamp in own.stamps(_MAX_FILES)}


def _undo_edits(copy: _Copy) -> None:
    try:
        while copy.history.newest_time() >= copy.since:
            copy.history.undo_newest(copy.workspace)
    except FileError as error:
        copy.undo_error = str(error)


def _restore_product(copy: _Copy, path: str, products: KnownProducts) -> None:
    """Remove what a later run made, or write what the file held before; else note the file."""
    name = path.rpartition("/")[2]
    digest = _digest(copy.workspace, path)
    earlier = products.earlier.get(name, {})
    if digest in earlier:
        return
    if (name, digest) not in products.later or len(earlier) > 1:
        copy.unknown.append(path)
        return
    try:
        if earlier:
            [read_content] = earlier.values()
            copy.workspace.write(path, read_content())
        else:
            copy.workspace.delete(path)
    except (FileError, OSError):
        copy.unknown.append(path)


def _digest(workspace: Workspace, path: str) -> str:
    digest = hashlib.sha256()
    try:
        with workspace.open(path) as file:
            while piece := file.read(_PIECE_BYTES):
                digest.update(piece)
    except FileError:
        return ""
    return digest.hexdigest()


def _remove_later_records(records: Path, since: int) -> None:
    """Remove the texts of sources, results and reports that later runs have stored."""
    for name in MIRROR_FOLDERS:
        for above, _, files in os.walk(records / "mirrors" / name):
            for file in files:
                path = Path(above, file)
                if path.lstat().st_mtime_ns >= since:
                    path.unlink()


def _describe(copy: _Copy) -> str:
    sentences: list[str] = []
    if copy.undo_error:
        sentences.append(f"Not all edits since this question could be undone: {copy.undo_error}")
    if copy.unknown:
        shown = ", ".join(copy.unknown[:_NAMED])
        more = f" and {len(copy.unknown) - _NAMED} more" if len(copy.unknown) > _NAMED else ""
        sentences.append(f"Changed by code since this question, and left as they are now: {shown}{more}.")
    return " ".join(sentences)
