"""The changes that file tools made in a workspace, so that they can be undone.

An edit changes the content of one file. An operation moves, copies and deletes files and folders; several are
checked together and done together, or not at all. The thread's code cannot access the records:

    NUMBER-MARK           an edit: the content before; MARK is derived from the path
    NUMBER-operation/     an operation: what undoes it, and an archive of each thing that it removed
    transaction-N         the operation in progress; N of its steps were begun

A step of an operation is one rename within the workspace, or can be repeated. What an operation removes is
first renamed to a draft, so that a failure or a kill during it loses nothing: the next opening of the history
reverts the begun steps. Removed files are copied to the archive, not moved: a program of the sandbox that has
one open could otherwise continue to write where no limit applies.
"""

import fcntl
import hashlib
import json
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from maniple.errors import FileError
from maniple.sandbox.safe_open import DRAFT, split_path
from maniple.sandbox.workspaces import EntryKind, NameTaken, Workspace, Workspaces, list_archive

STEPS_OF_A_FILE = 20
STEPS = 500
STORED_BYTES = 20_000_000
EDITED_BYTES = 2_000_000
ARCHIVED_BYTES = 100_000_000
"""Of what the operations of one thread have removed."""
_GONE = "-"
_LOCK = "lock"
_OPERATION = "operation"
_TRANSACTION = "transaction-"
_MAX_ERRORS = 20
_NAMED = 3
_PIECE_BYTES = 1024 * 1024

Edit = Callable[[bytes | None], bytes]
"""Returns the new content for the old one, which is None for a missing file."""
Action = Literal["move", "copy", "delete", "create_directory"]
Step = tuple[str, ...]
"""A verb and its paths:

`make PATH`, `drop PATH` (a folder, if it is empty), `move OLD NEW`, `copy OLD DRAFT`,
`restore ARCHIVE DRAFT`, `set-aside PATH DRAFT ARCHIVE`.
"""
Moves = Sequence[tuple[str, str]]
"""(old path, new path) of what was moved, in the order of the moves."""


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


@dataclass(frozen=True, slots=True)
class EditStep:
    """One edit: the content before (None for a missing file) and the SHA-256 of the content after it."""

    file: Path
    before: bytes | None
    after: str
    path: str = ""
    """The file that was edited; "" in records of former versions."""


@dataclass(frozen=True, slots=True)
class EditHistory:
    """The changes of one thread; the oldest are dropped first. Every method blocks on disk.

    An edit is recorded before it is made. A crash in between leaves a step that changed nothing, and `undo`
    skips it. The records survive a restart.
    """

    folder: Path

    @classmethod
    def of(cls, workspaces: Workspaces, key: str) -> "EditHistory":
        """Return the changes of a thread's workspace."""
        return cls(workspaces.records(key) / "edits")

    def change(self, workspace: Workspace, path: str, edit: Edit) -> bytes | None:
        """Edit a file and return its previous content; raises `FileError` without changing the file.

        Changes of one thread are serialized across processes.
        """
        with self._locked(workspace):
            _refuse_read_only(workspace, path)
            before = _read_content(workspace, path)
            self._make(workspace, path, before, edit(before))
            return before

    def write(self, workspace: Workspace, path: str, content: bytes) -> None:
        """Replace the file of this name; the replacement of a file that is too large cannot be undone."""
        with self._locked(workspace):
            _refuse_read_only(workspace, path)
            if workspace.is_missing(path):
                with suppress(NameTaken):  # the thread's code wrote the file just now
                    self._make(workspace, path, None, content)
                    return
            if workspace.size(path) in range(EDITED_BYTES + 1):
                self._make(workspace, path, _read_content(workspace, path), content)
            else:
                workspace.write(path, content)
                for file in self._files(_mark(path)):
                    file.unlink(missing_ok=True)

    def undo(self, workspace: Workspace, path: str) -> tuple[bytes, bytes | None]:
        """Undo the newest edit of a file, also under a former name; return the content before and after.

        Raises `FileError` when there is no edit, or when the file was changed by other means since.
        """
        with self._locked(workspace):
            held = _read_content(workspace, path)
            for step in self._steps(path):
                if _digest(held) == step.after and held is not None:
                    self._undo_edit(workspace, path, step)
                    return held, step.before
                if held is None and step.before is not None:
                    raise FileError(f"There is no file {path!r} now, so its edits cannot be undone.")
                if held != step.before:
                    raise FileError(
                        f"{path!r} was changed by other means since its newest edit, so that is not undone. "
                        "View it and change it as it is now."
                    )
                step.file.unlink(missing_ok=True)
        raise FileError(f"There is no edit of {path!r} to undo.")

    def carry_out(
        self,
        workspace: Workspace,
        operations: Sequence[FileOperation],
        is_reserved: Callable[[str], bool] = lambda _: False,
    ) -> OperationReport:
        """Do all operations in their order, or none: then `FileError` gives the reason for each.

        `is_reserved` returns whether a path is a name that only the team itself may give.
        """
        with self._locked(workspace):
            plan = _Plan(workspace, is_reserved)
            plan.add_all(operations)
            workspace.check_room(plan.new_bytes)
            if not plan.steps:
                return OperationReport(plan.done)
            entry = f"{self._next_number():012}-{_OPERATION}"
            transaction = _Transaction(self.folder, workspace, plan.steps, entry)
            lost = transaction.carry_out(plan.undo_steps, plan.moves, plan.done)
            self._drop_oldest()
            return OperationReport(plan.done, plan.moves, lost)

    def undo_newest(self, workspace: Workspace, most: int = 1) -> OperationReport:
        """Undo the newest changes, the newest first: edits, and operations as a whole.

        Raises `FileError` if not even the newest can be undone.
        """
        done: list[str] = []
        moves: list[tuple[str, str]] = []
        with self._locked(workspace):
            for entry in reversed(self._files()):
                if len(done) >= most:
                    break
                try:
                    if entry.is_dir():
                        moves += self._undo_operation(workspace, entry, done)
                    else:
                        self._undo_newest_edit(workspace, _read_step(entry), done)
                except FileError as error:
                    if not done:
                        raise
                    return OperationReport([*done, f"Then no further: {error}"], moves)
        if not done:
            raise FileError("There is nothing to undo: no file tool has changed anything here.")
        return OperationReport(done, moves, remaining=len(self._files()))

    def _undo_operation(self, workspace: Workspace, entry: Path, done: list[str]) -> Moves:
        record = _read_record(entry)
        if record["lost"]:
            _discard(entry)
            what = f"{_name_few(record['done'])} ({record['lost']})"
            raise FileError(f"This cannot be undone: {what}. What was before it still can.")
        plan = _Plan(workspace)
        plan.add_undo(entry, record)
        workspace.check_room(plan.new_bytes)
        transaction = _Transaction(self.folder, workspace, plan.steps, "", entry.name)
        transaction.carry_out([], [], [])
        done.append(f"Undone: {_describe_undone(workspace, record['undo'])}")
        return [(new, old) for old, new in reversed(record["moves"])]

    def _undo_newest_edit(self, workspace: Workspace, step: EditStep, done: list[str]) -> None:
        if not step.path:
            raise FileError("The change before is an edit of a former version; undo it in its file.")
        held = _read_content(workspace, step.path)
        if held is not None and _digest(held) == step.after:
            self._undo_edit(workspace, step.path, step)
            was = "is as it was" if step.before is not None else "was new, and is gone again"
            done.append(f"Undone: an edit; {step.path} {was}")
        elif held == step.before:
            step.file.unlink(missing_ok=True)
        else:
            raise FileError(f"{step.path!r} was changed by other means since its newest edit.")

    def _undo_edit(self, workspace: Workspace, path: str, step: EditStep) -> None:
        if step.before is None:
            workspace.delete(path)
        else:
            workspace.write(path, step.before)
        step.file.unlink(missing_ok=True)

    def _make(self, workspace: Workspace, path: str, before: bytes | None, after: bytes) -> None:
        record = self._record_step(path, before, after)
        try:
            (workspace.create if before is None else workspace.write)(path, after)
        except FileError:
            record.unlink(missing_ok=True)
            raise

    def _steps(self, path: str) -> Iterator[EditStep]:
        """Yield the edits of a file, newest first, also those under the names that it had before."""
        name = "/".join(split_path(path))
        for entry in reversed(self._files()):
            if not entry.is_dir():
                if entry.name.endswith(_mark(name)):
                    yield _read_step(entry)
                continue
            for old, new in reversed(_read_record(entry)["moves"]):
                if _is_inside(name, new):
                    name = old + name[len(new) :]
                elif _is_inside(name, old):
                    return  # what had this name before has another one now

    def _record_step(self, path: str, before: bytes | None, after: bytes) -> Path:
        name = "/".join(split_path(path))
        file = self.folder / f"{self._next_number():012}-{_mark(path)}"
        draft = self.folder / f"{DRAFT}{os.urandom(8).hex()}"
        existed = _GONE if before is None else "+"
        head = f"{_digest(after)}\n{existed}{json.dumps(name)}\n".encode()
        try:
            with draft.open("wb") as target:
                target.write(head + (before or b""))
                target.flush()
                os.fsync(target.fileno())
            draft.rename(file)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise FileError(
                f"{path!r} is unchanged because its undo cannot be stored: {error.strerror}."
            ) from error
        for old in self._files(_mark(path))[:-STEPS_OF_A_FILE]:
            old.unlink(missing_ok=True)
        self._drop_oldest()
        return file

    def _drop_oldest(self) -> None:
        edits, archives = STORED_BYTES, ARCHIVED_BYTES
        for count, entry in enumerate(reversed(self._files()), start=1):
            if entry.is_dir():
                archives -= sum(file.stat().st_size for file in entry.iterdir())
            else:
                edits -= entry.stat().st_size
            if count > 1 and (min(edits, archives) < 0 or count > STEPS):
                _discard(entry)

    def _next_number(self) -> int:
        files = self._files()
        return int(files[-1].name.partition("-")[0]) + 1 if files else 1

    def _files(self, mark: str = "") -> list[Path]:
        return sorted(
            file for file in self.folder.iterdir() if file.name[0].isdigit() and file.name.endswith(mark)
        )

    @contextmanager
    def _locked(self, workspace: Workspace) -> Iterator[None]:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise FileError(f"Nothing can be edited: {self.folder}: {error.strerror}.") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _Transaction.recover(self.folder, workspace)
            yield
        finally:
            os.close(lock)


@dataclass(slots=True)
class _Plan:
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
        copies = _stamp_copies(self.workspace, record["undo"])
        for verb, *paths in record["undo"]:
            if verb == "move":
                self._require_free(paths[1], "undo")
                self._require_there(paths[0])
                self._make_parents(paths[1], [])
            elif verb == "restore":
                self._require_free(paths[1], "undo")
                self._make_parents(paths[1], [])
                draft = _draft()
                self._restored[draft], size = list_archive(entry / paths[0])
                self.new_bytes += size
                self.steps.append(("restore", f"{entry.name}/{paths[0]}", draft))
                verb, paths = "move", [draft, paths[1]]
            elif verb == "set-aside":
                self._require_there(paths[0])
                if copies[paths[0]] != record["copies"].get(paths[0]):
                    raise FileError(f"The copy {paths[0]!r} was changed since. Delete it instead.")
                paths[1] = _draft()
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
        real, draft = self._origin(source), _draft()
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
        if _is_inside(destination, source):
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
        self.steps.append(("set-aside", path, _draft(), archive))
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
                if _is_inside(path, new):
                    path = old + path[len(new) :]
                elif verb == "move" and _is_inside(path, old):
                    return None
            elif verb == "make" and path == paths[0]:
                return _NewEntry("folder")
            elif verb == "restore" and _is_inside(path, paths[1]):
                stored = self._restored[paths[1]].get(path[len(paths[1]) :])
                return _NewEntry(stored) if stored is not None else None
            elif verb in ("set-aside", "drop") and _is_inside(path, paths[0]):
                return None
        return path


@dataclass(frozen=True, slots=True)
class _NewEntry:
    """What does not exist yet."""

    kind: EntryKind


@dataclass(frozen=True, slots=True)
class _Transaction:
    """Steps that are all done or taken back.

    `entry` is the name of the record that will undo them; "" for an undo, which removes the record `undoes`.
    """

    folder: Path
    workspace: Workspace
    steps: Sequence[Step]
    entry: str
    undoes: str = ""

    @classmethod
    def recover(cls, folder: Path, workspace: Workspace) -> None:
        """Finish, or take back, what an earlier process has begun; the caller holds the lock."""
        for file in folder.glob(f"{_TRANSACTION}*"):
            stored = json.loads(file.read_text(encoding="utf-8"))
            steps = [tuple(step) for step in stored["steps"]]
            transaction = cls(folder, workspace, steps, stored["entry"], stored["undoes"])
            transaction._end(file)
        _discard_drafts(folder)

    def carry_out(self, undo_steps: Sequence[Step], moves: Moves, done: Sequence[str]) -> str:
        """Do the steps and record how to undo them; return why that cannot be recorded, "" if it was.

        Raises `FileError` after all was taken back.
        """
        file = self._begin()
        lost = ""
        try:
            for number, step in enumerate(self.steps):
                file = file.rename(self.folder / f"{_TRANSACTION}{number + 1}")
                self._do(step)
            if self.undoes:
                (self.folder / self.undoes).rename(self._draft_path())
            else:
                lost = self._record(undo_steps, moves, done)
        except (FileError, OSError) as error:
            self._end(file)
            if isinstance(error, FileError):
                raise
            raise FileError(f"Nothing was changed: {error.strerror}.") from error
        self._end(file, is_done=True)
        _discard_drafts(self.folder)
        return lost

    def _begin(self) -> Path:
        file = self.folder / f"{_TRANSACTION}0"
        draft = self._draft_path()
        stored = {"steps": self.steps, "entry": self.entry, "undoes": self.undoes}
        try:
            with draft.open("w", encoding="utf-8") as target:
                json.dump(stored, target)
                target.flush()
                os.fsync(target.fileno())
            return draft.rename(file)
        except OSError as error:
            draft.unlink(missing_ok=True)
            reason = error.strerror or error
            raise FileError(f"Nothing was changed, because it cannot be recorded: {reason}.") from error

    def _record(self, undo_steps: Sequence[Step], moves: Moves, done: Sequence[str]) -> str:
        """Store the record of the operation, whose last rename makes it done."""
        draft = self._draft_path()
        draft.mkdir(mode=0o700)
        lost = ""
        for step in self.steps:
            if step[0] == "set-aside" and not lost:
                lost = self._archive(step, draft)
        copies = _stamp_copies(self.workspace, undo_steps)
        record = {"done": done, "moves": moves, "copies": copies, "undo": [] if lost else undo_steps}
        with (draft / _OPERATION).open("w", encoding="utf-8") as file:
            json.dump({**record, "lost": lost}, file)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(self.folder / self.entry)
        return lost

    def _archive(self, step: Step, draft: Path) -> str:
        _, path, aside, name = step
        left = ARCHIVED_BYTES - sum(file.stat().st_size for file in draft.iterdir())
        try:
            with tarfile.open(draft / name, "w") as archive:
                self.workspace.pack(aside, archive, most_bytes=left)
        except FileError as error:
            for file in draft.iterdir():
                file.unlink()
            return str(error).replace(aside, path)
        return ""

    def _end(self, file: Path, *, is_done: bool = False) -> None:
        """Finish what is done, else take back the steps that were begun."""
        if is_done or self._is_done():
            for step in self.steps:
                if step[0] == "set-aside" and self.workspace.kind(step[2]) is not None:
                    self.workspace.remove(step[2])
        else:
            begun = int(file.name.removeprefix(_TRANSACTION))
            for number in range(begun, 0, -1):
                self._take_back(self.steps[number - 1])
                file = file.rename(self.folder / f"{_TRANSACTION}{number - 1}")
        file.unlink(missing_ok=True)

    def _is_done(self) -> bool:
        if self.undoes:
            return not (self.folder / self.undoes).exists()
        return (self.folder / self.entry).exists()

    def _do(self, step: Step) -> None:
        match step:
            case ("make", path):
                self.workspace.make_folder(path)
            case ("drop", path):
                self.workspace.remove_folder(path)
            case ("copy", old, new):
                self.workspace.copy(old, new)
            case ("restore", archive, draft):
                with tarfile.open(self.folder / archive) as stored:
                    self.workspace.unpack(stored, draft)
            case (_, old, new, *_):
                self.workspace.move(old, new)
            case _:
                raise ValueError(step)

    def _take_back(self, step: Step) -> None:
        """Undo a step that was done or only begun."""
        verb, first, second = (*step, "")[:3]
        kinds = self.workspace.kind(first), self.workspace.kind(second) if second else None
        if verb == "make":
            self.workspace.remove_folder(first)
        elif verb == "drop":
            if kinds[0] is None:
                self.workspace.make_folder(first)
        elif verb in ("copy", "restore"):
            if kinds[1] is not None:
                self.workspace.remove(second)
        elif kinds[1] is not None and (kinds[0] is None or verb == "set-aside"):
            self._put_back(second, first, is_free=kinds[0] is None)

    def _put_back(self, now: str, before: str, *, is_free: bool) -> None:
        """Undo a rename. After a kill, code may have taken the name, or removed the folder."""
        try:
            if is_free:
                self.workspace.move(now, before, make_parents=True)
                return
        except FileError:
            pass  # raised, it would come again with each later change
        if now.startswith(DRAFT):
            self.workspace.move(now, f"recovered-{now.removeprefix(DRAFT)}")

    def _draft_path(self) -> Path:
        return self.folder / f"{DRAFT}{os.urandom(8).hex()}"


def _name(path: str) -> str:
    parts = split_path(path)
    if not parts:
        raise FileError(f"{path!r} is the workspace itself; name a file or a folder in it.")
    if any(part.startswith(DRAFT) for part in parts):
        raise FileError(f"{path!r} is a name of files that are not complete yet; choose another.")
    return "/".join(parts)


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _draft() -> str:
    return f"{DRAFT}{os.urandom(8).hex()}"


def _stamp(workspace: Workspace, path: str) -> str:
    """Return a digest of the names and the content of what is at `path`."""
    digest = hashlib.sha256()
    below = workspace.tree(path) if workspace.kind(path) == "folder" else []
    for name in ("", *(f"/{one.path}" for one in below)):
        kind = workspace.kind(path + name)
        digest.update(f"{kind} {name!r}".encode())
        if kind == "file":
            with workspace.open(path + name) as file:
                while piece := file.read(_PIECE_BYTES):
                    digest.update(piece)
    return digest.hexdigest()


def _stamp_copies(workspace: Workspace, undo_steps: Sequence[Sequence[str]]) -> dict[str, str]:
    """Return a digest of each copy that the steps remove, by the name that it has then.

    The copy, or a part of it, may have another name now, from which an earlier one of the steps moves it.
    """
    moves: list[tuple[str, str]] = []
    stamps: dict[str, str] = {}
    for verb, path, *others in undo_steps:
        if verb == "move":
            moves.append((path, others[0]))
        elif verb == "set-aside":
            names = {path: None}  # a set that has an order
            for now, then in reversed(moves):
                contained = [now + name[len(then) :] for name in names if _is_inside(name, then)]
                moved = any(_is_inside(then, name) for name in names)
                names |= dict.fromkeys([*contained, *([now] if moved else [])])
            stamps[path] = "".join(_stamp(workspace, name) for name in names)
    return stamps


def _describe_undone(workspace: Workspace, undo_steps: Sequence[Sequence[str]]) -> str:
    """Return where the files of an undone operation are now, with a few names of many."""
    groups: dict[str, list[str]] = {}
    for verb, path, *others in reversed(undo_steps):
        if verb == "move":
            folder, _, name = others[0].rpartition("/")
            groups.setdefault(f"moved back to {f'{folder}/' if folder else 'the top folder'}", []).append(
                name
            )
        elif verb == "restore":
            groups.setdefault("brought back", []).append(others[0])
        elif workspace.kind(path) is None:
            groups.setdefault("removed again", []).append(f"{path}/" if verb == "drop" else path)
    return "; ".join(f"{what}: {_name_few(names)}" for what, names in groups.items()) or "no change"


def _name_few(names: Sequence[str]) -> str:
    few = ", ".join(names[:_NAMED])
    return few if len(names) <= _NAMED else f"{len(names)} in all ({few}, …)"


def _discard(entry: Path) -> None:
    if entry.is_dir():
        shutil.rmtree(entry, ignore_errors=True)
    else:
        entry.unlink(missing_ok=True)


def _discard_drafts(folder: Path) -> None:
    for draft in folder.glob(f"{DRAFT}*"):
        _discard(draft)


def _read_step(file: Path) -> EditStep:
    after, _, rest = file.read_bytes().partition(b"\n")
    existed, _, before = rest.partition(b"\n")
    path = json.loads(existed[1:]) if len(existed) > 1 else ""
    return EditStep(file, None if existed.startswith(_GONE.encode()) else before, after.decode(), path)


def _read_record(entry: Path) -> dict[str, Any]:
    try:
        return json.loads((entry / _OPERATION).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {"done": ["an operation"], "moves": [], "undo": [], "lost": "its record is damaged"}


def _refuse_read_only(workspace: Workspace, path: str) -> None:
    workspace.check_changeable(path)
    if workspace.is_read_only(path):
        raise FileError(f"{path!r} is read-only, as the files of skills are; write to another name.")


def _read_content(workspace: Workspace, path: str) -> bytes | None:
    """Return a file's content, None for a missing file; raises `FileError` for any other."""
    if workspace.is_missing(path):
        return None
    head = workspace.read(path, EDITED_BYTES)
    if head.size > EDITED_BYTES:
        raise FileError(f"{path!r} has {head.size} bytes, too many to be edited; work on it with code.")
    return head.content


def _mark(path: str) -> str:
    return hashlib.sha256("/".join(split_path(path)).encode()).hexdigest()[:16]


def _digest(content: bytes | None) -> str:
    return hashlib.sha256(content or b"").hexdigest()
