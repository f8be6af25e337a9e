"""Steps in a workspace that are all done, or all taken back, also after a kill.

A step is one rename within the workspace, or can be repeated. What is removed is first renamed to a draft,
so that a failure or a kill loses nothing: `Transaction.recover` reverts the begun steps. Removed files are
copied to an archive, not moved: a program of the sandbox that has one open could otherwise continue to write
where no limit applies.
"""

import hashlib
import json
import os
import shutil
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from maniple.errors import FileError
from maniple.workspace.files import Workspace
from maniple.workspace.safe_open import DRAFT, new_draft

ARCHIVED_BYTES = 100_000_000
"""Of what the operations of one thread have removed."""
OPERATION = "operation"
"""The file in a record that says what undoes the operation."""
_TRANSACTION = "transaction-"
_PIECE_BYTES = 1024 * 1024

Step = tuple[str, ...]
"""A verb and its paths:

`make PATH`, `drop PATH` (a folder, if it is empty), `move OLD NEW`, `copy OLD DRAFT`,
`restore ARCHIVE DRAFT`, `set-aside PATH DRAFT ARCHIVE`.
"""
Moves = Sequence[tuple[str, str]]
"""(old path, new path) of what was moved, in the order of the moves."""


@dataclass(frozen=True, slots=True)
class Transaction:
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
        discard_drafts(folder)

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
        discard_drafts(self.folder)
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
        copies = stamp_copies(self.workspace, undo_steps)
        record = {"done": done, "moves": moves, "copies": copies, "undo": [] if lost else undo_steps}
        with (draft / OPERATION).open("w", encoding="utf-8") as file:
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
        return self.folder / new_draft()


def is_inside(path: str, folder: str) -> bool:
    """Return whether a path is a folder, or in it."""
    return path == folder or path.startswith(f"{folder}/")


def stamp_copies(workspace: Workspace, undo_steps: Sequence[Sequence[str]]) -> dict[str, str]:
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
                contained = [now + name[len(then) :] for name in names if is_inside(name, then)]
                moved = any(is_inside(then, name) for name in names)
                names |= dict.fromkeys([*contained, *([now] if moved else [])])
            stamps[path] = "".join(_stamp(workspace, name) for name in names)
    return stamps


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


def discard(entry: Path) -> None:
    """Remove a record, if that is possible."""
    if entry.is_dir():
        shutil.rmtree(entry, ignore_errors=True)
    else:
        entry.unlink(missing_ok=True)


def discard_drafts(folder: Path) -> None:
    """Remove what a kill has left incomplete."""
    for draft in folder.glob(f"{DRAFT}*"):
        discard(draft)
