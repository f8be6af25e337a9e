"""`--out DIR`: the report and the files of a run, written into a folder of the user."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from maniple.cli.process import WrongUsage
from maniple.cli.text import clean, one_line
from maniple.errors import FileError
from maniple.report_files import Bundle, load_report, write_bundle
from maniple.report_files.bundle import REPORT, EntryKind
from maniple.run_files.pictures import FigureFinder
from maniple.store import RunRecord, Store
from maniple.text import counted
from maniple.workspace import Workspaces

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NAMED = 5


def require_output_folder(given: Path, data_dir: Path) -> None:
    """Raise `WrongUsage` unless files can be written into a folder; one that is missing can be made."""
    folder = _locate(given)
    real, data = folder.resolve(), data_dir.expanduser().resolve()
    if real == data or data in real.parents:
        raise WrongUsage(f"--out: {given} belongs to maniple's own data. Name another folder.")
    existing = next(one for one in (folder, *folder.parents) if os.path.lexists(one))
    if not existing.is_dir():
        raise WrongUsage(f"--out: {existing} is not a folder. Name another one, or remove it.")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise WrongUsage(f"--out: {existing} cannot be written to. Name another folder, or allow it.")


async def write_run_files(
    store: Store, workspaces: Workspaces, run: RunRecord, report: str, given: Path
) -> list[str]:
    """Write the report, if there is one, and the files of the run; return lines about them.

    No existing file is replaced: a file whose name is taken gets a number, and the report's links follow.

    Raises:
        FileError: the folder cannot be written to.
        StoreError: the run's files cannot be listed.
    """
    folder = _locate(given)
    loaded = await load_report(FigureFinder(store, workspaces, run), report, with_files=True)

    def write() -> Bundle:
        folder.mkdir(parents=True, exist_ok=True)
        bundle = write_bundle(loaded, _Entries(folder).find)
        _write_files(folder, bundle.files)
        return bundle

    try:
        bundle = await asyncio.to_thread(write)
    except OSError as error:
        reason = error.strerror or error
        raise FileError(f"{given} cannot be written to: {reason}. Name another folder with --out.") from error
    return _describe(folder, bundle, loaded.left_out, workspaces.locate(run.thread_id).path)


def _locate(given: Path) -> Path:
    try:
        return given.expanduser().absolute()
    except RuntimeError as error:  # `~name` without such a user
        raise WrongUsage(f"--out: {given} names no folder. Name another one.") from error


def _describe(folder: Path, bundle: Bundle, left_out: Sequence[str], workspace: Path) -> list[str]:
    if not bundle.files:
        return [f"Nothing was written to {folder}: the run has no report and made no files."]
    lines = [f"Saved {counted(len(bundle.files), 'file')} to {folder}"]
    if bundle.report not in ("", REPORT):
        lines.append(f"The report is {bundle.report} there, because {REPORT} exists.")
    if left_out:
        named = ", ".join(one_line(one, 60) for one in left_out[:_NAMED])
        more = f" and {len(left_out) - _NAMED} more" if len(left_out) > _NAMED else ""
        lines.append(f"Left out, because too large or too many: {named}{more}. They are in {workspace}.")
    return [clean(line) for line in lines]


class _Entries:
    """What is in a folder already. Links in it are never followed."""

    def __init__(self, folder: Path) -> None:
        self._root = folder
        self._listed: dict[str, dict[str, tuple[str, EntryKind]]] = {}

    def find(self, path: str) -> EntryKind | None:
        """Return what a name is taken by: also by one that differs by case, or by a link."""
        above, _, name = path.rpartition("/")
        spelling, kind = self._list(above).get(name.casefold(), (name, None))
        return "file" if kind == "folder" and spelling != name else kind

    def _list(self, above: str) -> dict[str, tuple[str, EntryKind]]:
        if above not in self._listed:
            found: dict[str, tuple[str, EntryKind]] = {}
            with suppress(FileNotFoundError), os.scandir(self._root / above) as entries:
                for one in entries:
                    kind: EntryKind = "folder" if one.is_dir(follow_symlinks=False) else "file"
                    found[one.name.casefold()] = one.name, kind
            self._listed[above] = found
        return self._listed[above]


def _write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write new files below a folder without following links in it. Raises `OSError`."""
    root = os.open(folder, _FOLDER & ~os.O_NOFOLLOW)
    try:
        for path, content in files.items():
            _write_file(root, path.split("/"), content)
    finally:
        os.close(root)


def _write_file(root: int, parts: list[str], content: bytes) -> None:
    current = os.dup(root)
    try:
        for part in parts[:-1]:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=current)
            below = os.open(part, _FOLDER, dir_fd=current)
            os.close(current)
            current = below
        with os.fdopen(os.open(parts[-1], _CREATE, 0o666, dir_fd=current), "wb") as file:
            file.write(content)
    finally:
        os.close(current)
