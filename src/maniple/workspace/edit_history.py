"""The changes that file tools made in a workspace, so that they can be undone.

An edit changes the content of one file. An operation moves, copies and deletes files and folders; several are
checked together and done together, or not at all. The thread's code cannot access the records:

    NUMBER-MARK           an edit: the content before; MARK is derived from the path
    NUMBER-operation/     an operation: what undoes it, and an archive of each thing that it removed
    transaction-N         the operation in progress (`Transaction`); N of its steps were begun
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maniple.errors import FileError
from maniple.workspace.files import NameTaken, Workspace
from maniple.workspace.operations import FileOperation, OperationPlan, OperationReport
from maniple.workspace.safe_open import new_draft, split_path
from maniple.workspace.transactions import (
    ARCHIVED_BYTES,
    OPERATION,
    Moves,
    Transaction,
    discard,
    is_inside,
)
from maniple.workspace.workspaces import Workspaces

STEPS_OF_A_FILE = 20
STEPS = 500
STORED_BYTES = 20_000_000
EDITED_BYTES = 2_000_000
_GONE = "-"
_LOCK = "lock"
_NAMED = 3

Edit = Callable[[bytes | None], bytes]
"""Returns the new content for the old one, which is None for a missing file."""


@dataclass(frozen=True, slots=True)
class EditStep:
    """One edit: the content before (None for a missing file) and the SHA-256 of the content after it."""

    file: Path
    before: bytes | None
    after: str
    path: str
    """The file that was edited."""


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
            plan = OperationPlan(workspace, is_reserved)
            plan.add_all(operations)
            workspace.check_room(plan.new_bytes)
            if not plan.steps:
                return OperationReport(plan.done)
            entry = f"{self._next_number():012}-{OPERATION}"
            transaction = Transaction(self.folder, workspace, plan.steps, entry)
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

    def newest_time(self) -> int:
        """Return the time of the newest change in nanoseconds; 0 if there is none."""
        files = self._files() if self.folder.is_dir() else []
        return files[-1].stat().st_mtime_ns if files else 0

    def _undo_operation(self, workspace: Workspace, entry: Path, done: list[str]) -> Moves:
        record = _read_record(entry)
        if record["lost"]:
            discard(entry)
            what = f"{_name_few(record['done'])} ({record['lost']})"
            raise FileError(f"This cannot be undone: {what}. What was before it still can.")
        plan = OperationPlan(workspace)
        plan.add_undo(entry, record)
        workspace.check_room(plan.new_bytes)
        transaction = Transaction(self.folder, workspace, plan.steps, "", entry.name)
        transaction.carry_out([], [], [])
        done.append(f"Undone: {_describe_undone(workspace, record['undo'])}")
        return [(new, old) for old, new in reversed(record["moves"])]

    def _undo_newest_edit(self, workspace: Workspace, step: EditStep, done: list[str]) -> None:
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
                if is_inside(name, new):
                    name = old + name[len(new) :]
                elif is_inside(name, old):
                    return  # what had this name before has another one now

    def _record_step(self, path: str, before: bytes | None, after: bytes) -> Path:
        name = "/".join(split_path(path))
        file = self.folder / f"{self._next_number():012}-{_mark(path)}"
        draft = self.folder / new_draft()
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
                discard(entry)

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
            Transaction.recover(self.folder, workspace)
            yield
        finally:
            os.close(lock)


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


def _read_step(file: Path) -> EditStep:
    after, _, rest = file.read_bytes().partition(b"\n")
    existed, _, before = rest.partition(b"\n")
    is_new = existed.startswith(_GONE.encode())
    return EditStep(file, None if is_new else before, after.decode(), json.loads(existed[1:]))


def _read_record(entry: Path) -> dict[str, Any]:
    try:
        return json.loads((entry / OPERATION).read_text(encoding="utf-8"))
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
