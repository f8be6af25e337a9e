"""Moves, copies and deletes files and folders: what is asked for, checked and turned into steps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from maniple.errors import FileError
from maniple.workspace.files import EntryKind, Workspace, list_archive
from maniple.workspace.safe_open import DRAFT, new_draft, split_path
from maniple.workspace.transactions import Moves, Step, is_inside, stamp_copies

_MAX_ERRORS = 20

Action = Literal["move", "copy", "delete", "create_directory"]


@dataclass(frozen=True, slots=True)
class FileOperation:
    """One thing to do with a file or a folder. An existing folder as `destination` means a place in it."""

    action: Action
    path: str
    destination: str = ""
    overwrite: bool = False
    """Whether a file of the destination's name is replaced."""


@dataclass(frozen=True, slots=True)
class OperationReport:
    """What was done, in sentences; `not_undoable` is why it cannot be undone, "" if it can."""

    done: Sequence[str]
    moves: Moves = ()
    not_undoable: str = ""
    remaining: int = 0
    """The number of older changes that can be undone, after an undo."""


@dataclass(slots=True)
class OperationPlan:
    """Checks operations against the workspace as it will be when those before them are done.

    Nothing is changed yet. `steps` do the operations, `undo_steps` undo them.
    """

    workspace: Workspace
    is_reserved: Callable[[str], bool] = lambda _: False
    steps: list[Step] = field(default_factory=list[Step])
    undo_steps: list[Step] = field(default_factory=list[Step])
    moves: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    done: list[str] = field(default_factory=list[str])
    new_bytes: int = 0
    _restored: dict[str, Mapping[str, EntryKind]] = field(default_factory=dict[str, Mapping[str, EntryKind]])
    """What is in an archive, by the draft that it is restored to."""

    def add_all(self, operations: Sequence[FileOperation]) -> None:
        """Add operations; raise `FileError` that names each one that cannot be done."""
        errors: list[str] = []
        for number, operation in enumerate(operations, start=1):
            try:
                self._add(operation)
            except FileError as error:
                where = f"{operation.action} {operation.path}"
                errors.append(f"{number}. {where}: {error}" if len(operations) > 1 else str(error))
        if not errors:
            return
        if len(operations) == 1:
            raise FileError(errors[0])
        more = [f"and {len(errors) - _MAX_ERRORS} more"] if len(errors) > _MAX_ERRORS else []
        head = f"Nothing was changed: {len(errors)} of {len(operations)} operations cannot be done."
        raise FileError("\n".join([head, *errors[:_MAX_ERRORS], *more]))

    def add_undo(self, entry: Path, record: dict[str, Any]) -> None:
        """Add the steps that undo an operation; raise `FileError` if the files are not as it left them."""
        copies = stamp_copies(self.workspace, record["undo"])
        for verb, *paths in record["undo"]:
            if verb == "move":
                self._require_free(paths[1], "undo")
                self._require_there(paths[0])
                self._make_parents(paths[1], [])
            elif verb == "restore":
                self._require_free(paths[1], "undo")
                self._make_parents(paths[1], [])
                draft = new_draft()
                self._restored[draft], size = list_archive(entry / paths[0])
                self.new_bytes += size
                self.steps.append(("restore", f"{entry.name}/{paths[0]}", draft))
                verb, paths = "move", [draft, paths[1]]
            elif verb == "set-aside":
                self._require_there(paths[0])
                if copies[paths[0]] != record["copies"].get(paths[0]):
                    raise FileError(f"The copy {paths[0]!r} was changed since. Delete it instead.")
                paths[1] = new_draft()
            self.steps.append((verb, *paths))

    def _add(self, operation: FileOperation) -> None:
        source = _name(operation.path)
        if operation.action == "create_directory":
            self._create_folder(source)
            return
        kind = self._require_there(source)
        if operation.action == "delete":
            self._check_removable(source)
            self._set_aside(source)
            self.done.append(f"Deleted {source}")
            return
        destination = self._find_destination(source, operation.destination)
        if operation.action == "move":
            self._check_removable(source)
        elif kind not in ("file", "folder"):
            raise FileError(f"{source!r} is a link or a special file; only files and folders are copied.")
        self._check_reserved(source, destination)
        self._make_way(destination, overwrite=operation.overwrite)
        parents: list[str] = []
        self._make_parents(destination, parents)
        for parent in parents:
            self.undo_steps.insert(0, ("drop", parent))
        if operation.action == "move":
            self.steps.append(("move", source, destination))
            self.undo_steps.insert(0, ("move", destination, source))
            self.moves.append((source, destination))
            self.done.append(f"Moved {source} to {destination}")
        else:
            self._copy(source, destination)

    def _copy(self, source: str, destination: str) -> None:
        real, draft = self._origin(source), new_draft()
        if isinstance(real, str):
            self.new_bytes += self.workspace.bytes_of(real)
        self.steps += [("copy", source, draft), ("move", draft, destination)]
        self.undo_steps.insert(0, ("set-aside", destination, ""))
        self.done.append(f"Copied {source} to {destination}")

    def _create_folder(self, path: str) -> None:
        kind = self._kind(path)
        if kind == "folder":
            self.done.append(f"The folder {path} is there already")
            return
        if kind is not None:
            raise FileError(f"{path!r} exists and is no folder; choose another name.")
        made: list[str] = []
        self._make_parents(f"{path}/.", made)
        for folder in made:
            self.undo_steps.insert(0, ("drop", folder))
        self.done.append(f"Created the folder {path}")

    def _find_destination(self, source: str, given: str) -> str:
        if not given.strip():
            raise FileError("destination is missing: name the new path, or the folder to put it in.")
        destination = "/".join(split_path(given))
        if given.endswith("/") or not destination or self._kind(destination) == "folder":
            destination = f"{destination}/{source.rpartition('/')[2]}".lstrip("/")
        destination = _name(destination)
        if destination == source:
            raise FileError(f"{source!r} is there already: nothing would change.")
        if is_inside(destination, source):
            raise FileError(f"{source!r} cannot go into itself.")
        return destination

    def _check_reserved(self, source: str, destination: str) -> None:
        real = self._origin(source)
        below = [""]
        if isinstance(real, str) and self.workspace.kind(real) == "folder":
            below += [f"/{entry.path}" for entry in self.workspace.tree(real)]
        for one in below:
            split_path(destination + one)  # which refuses paths that could not be opened there
        if any(self.is_reserved(destination + one) for one in below):
            raise FileError(f"{destination!r} is a name of the team's own records; choose another name.")

    def _check_removable(self, path: str) -> None:
        """Raise `FileError` for what is read-only, or a folder with such a file."""
        real = self._origin(path)
        if not isinstance(real, str):
            return  # it is new, so no one has protected it
        if self.workspace.kind(real) == "folder":
            protected = next((one.path for one in self.workspace.tree(real) if one.is_read_only), None)
            if protected is not None:
                raise FileError(f"{path!r} holds {protected!r}, which is read-only. Copy what you need.")
        elif self.workspace.is_read_only(real):
            raise FileError(f"{path!r} is read-only: a record of the team, or a file of a skill. Copy it.")

    def _make_way(self, destination: str, *, overwrite: bool) -> None:
        kind = self._kind(destination)
        if kind is None:
            return
        if not overwrite:
            raise FileError(f"{destination!r} exists. Choose another name, or set overwrite to replace it.")
        if kind == "folder":
            raise FileError(f"{destination!r} is a folder, which is not replaced. Delete it first.")
        self._check_removable(destination)
        self._set_aside(destination)

    def _set_aside(self, path: str) -> None:
        archive = f"{len(self.steps)}.tar"
        self.steps.append(("set-aside", path, new_draft(), archive))
        self.undo_steps.insert(0, ("restore", archive, path))

    def _make_parents(self, path: str, made: list[str]) -> None:
        """Add the steps that make the missing folders above `path`, and their names to `made`."""
        parts = path.split("/")[:-1]
        for end in range(1, len(parts) + 1):
            above = "/".join(parts[:end])
            kind = self._kind(above)
            if kind is None:
                self.steps.append(("make", above))
                made.append(above)
            elif kind != "folder":
                raise FileError(f"{path!r} leads through {above!r}, which is no folder.")

    def _require_there(self, path: str) -> EntryKind:
        kind = self._kind(path)
        if kind is None:
            raise FileError(f"There is no file and no folder {path!r} in the workspace.")
        return kind

    def _require_free(self, path: str, what: str) -> None:
        if self._kind(path) is not None:
            raise FileError(f"{path!r} exists, so {what} would overwrite it. Move it away first.")

    def _kind(self, path: str) -> EntryKind | None:
        """Return what will have this name after the steps so far."""
        real = self._origin(path)
        if real is None:
            return None
        return self.workspace.kind(real) if isinstance(real, str) else real.kind

    def _origin(self, path: str) -> "str | _NewEntry | None":
        """Return the present name of what will have this one; None for nothing."""
        for verb, *paths in reversed(self.steps):
            if verb in ("move", "copy"):
                old, new = paths
                if is_inside(path, new):
                    path = old + path[len(new) :]
                elif verb == "move" and is_inside(path, old):
                    return None
            elif verb == "make" and path == paths[0]:
                return _NewEntry("folder")
            elif verb == "restore" and is_inside(path, paths[1]):
                stored = self._restored[paths[1]].get(path[len(paths[1]) :])
                return _NewEntry(stored) if stored is not None else None
            elif verb in ("set-aside", "drop") and is_inside(path, paths[0]):
                return None
        return path


@dataclass(frozen=True, slots=True)
class _NewEntry:
    """What does not exist yet."""

    kind: EntryKind


def _name(path: str) -> str:
    parts = split_path(path)
    if not parts:
        raise FileError(f"{path!r} is the workspace itself; name a file or a folder in it.")
    if any(part.startswith(DRAFT) for part in parts):
        raise FileError(f"{path!r} is a name of files that are not complete yet; choose another.")
    return "/".join(parts)
