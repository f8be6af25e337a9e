"""The uploads of a thread, and what the user is told about those that are not stored."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from maniple.errors import FileError, WorkspaceFull
from maniple.text import counted, file_size, shorten
from maniple.workspace.file_names import clean_file_name
from maniple.workspace.files import Workspace
from maniple.workspace.safe_open import new_draft

MAX_UPLOADS = 1_000

_NAMED_FILES = 3
_NAME_CHARACTERS = 80
_PIECE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Upload:
    """An uploaded file: its path in the workspace, bytes, and SHA-256 in hex.

    `at` is when it came, in seconds since the epoch; 0 before its record is read.
    """

    path: str
    size: int
    sha256: str
    at: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class StoredUpload:
    """An upload, and whether it replaced a file of the same name."""

    upload: Upload
    replaced: bool


@dataclass(frozen=True, slots=True)
class UploadStore:
    """The uploads of one thread. Every method blocks on disk.

    `records` is a folder outside the workspace with one small file per upload.
    """

    workspace: Workspace
    records: Path

    def add(self, files: Iterable[tuple[str, BinaryIO]]) -> list[StoredUpload]:
        """Copy open files, from their beginnings, to the `file_name` of each.

        A file of that name is replaced. Raises `FileError`, and `WorkspaceFull` before the first is copied if
        there is no room for all.
        """
        named = [(clean_file_name(name), source, source.seek(0, os.SEEK_END)) for name, source in files]
        self._check_room([(path, size) for path, _, size in named])
        stored: list[StoredUpload] = []
        for path, source, size in named:
            with naming_stored(stored, len(named)):
                stored.append(self._add(path, source, size))
        return stored

    def add_folder(self, files: Sequence[tuple[str, Path]]) -> list[StoredUpload]:
        """Copy files to paths in the workspace; each part of a path is a `clean_file_name`.

        The files are opened one at a time. Raises as `add` does, and `OSError` before the first is copied if
        one cannot be read.
        """
        sizes: list[int] = []
        for _, path in files:
            with path.open("rb") as source:
                sizes.append(os.fstat(source.fileno()).st_size)
        self._check_room([(name, size) for (name, _), size in zip(files, sizes, strict=True)])
        stored: list[StoredUpload] = []
        for (name, path), size in zip(files, sizes, strict=True):
            with path.open("rb") as source, naming_stored(stored, len(files)):
                stored.append(self._add(name, source, size))
        return stored

    def _check_room(self, files: Sequence[tuple[str, int]]) -> None:
        """Raise `WorkspaceFull`, in a text for the user, when there is no room for files of these bytes."""
        limit = self.workspace.max_bytes
        if limit is None:
            return
        sizes = dict(files)  # of two files of one name, the last one stays
        present = sum(self.workspace.size(path) or 0 for path in sizes)
        more = sum(sizes.values()) - present
        used = self.workspace.used_bytes() if more > 0 else 0
        if more <= 0 or used + more <= limit:
            return
        room = max(limit - used + present, 0)
        raise WorkspaceFull(
            f"{describe_excess(sizes, room)} Nothing was stored. The files of a conversation may have "
            f"{file_size(limit)} together (sandbox.disk_mb in conf.yaml), and it has {file_size(used)}. "
            "Choose smaller or fewer files, delete files of the conversation, or raise the limit."
        )

    def _add(self, path: str, source: BinaryIO, size: int) -> StoredUpload:
        source.seek(0)
        replaced = self.workspace.size(path) is not None
        digest = hashlib.sha256()
        self.workspace.write_checked(path, _pieces(source, size, digest))
        upload = Upload(path, self.workspace.size(path) or 0, digest.hexdigest())
        self._record(upload)
        return StoredUpload(upload, replaced)

    def list_uploads(self) -> list[Upload]:
        """Return the uploads that still have their name and size in the workspace, oldest first."""
        return [one for one in self._recorded() if self.workspace.size(one.path) == one.size]

    def forget(self, path: str) -> None:
        """Remove the record of an upload; the file itself stays."""
        self._file(path).unlink(missing_ok=True)

    def follow(self, moves: Sequence[tuple[str, str]]) -> None:
        """Change the records of uploads that were moved, or whose folders were: (old path, new path)."""
        names = {one.path: one for one in self._recorded()} if moves else {}
        for old, new in moves:
            for path in [one for one in names if one == old or one.startswith(f"{old}/")]:
                names[new + path[len(old) :]] = names.pop(path)
        moved = {path: record for path, record in names.items() if path != record.path}
        with suppress(OSError):
            times = {path: self._file(record.path).stat() for path, record in moved.items()}
            for path, record in moved.items():
                self._write_record(Upload(path, record.size, record.sha256))
                os.utime(self._file(path), ns=(times[path].st_atime_ns, times[path].st_mtime_ns))
            # Only now: a kill in between must leave a record of each file.
            for record in moved.values():
                if record.path not in names:
                    self._file(record.path).unlink(missing_ok=True)

    def _recorded(self) -> list[Upload]:
        found: list[tuple[int, Upload]] = []
        # An unreadable record is ignored: its file counts as one that the team made.
        with suppress(OSError), os.scandir(self.records) as entries:
            for entry in entries:
                with suppress(OSError, ValueError, TypeError):
                    record, status = Upload(**json.loads(Path(entry.path).read_bytes())), entry.stat()
                    found.append((status.st_mtime_ns, replace(record, at=status.st_mtime)))
        return [record for _, record in sorted(found, key=lambda one: (one[0], one[1].path))]

    def _record(self, upload: Upload) -> None:
        try:
            self.records.mkdir(mode=0o700, parents=True, exist_ok=True)
            if len(os.listdir(self.records)) < MAX_UPLOADS or self._file(upload.path).exists():  # noqa: PTH208
                self._write_record(upload)
        except OSError as error:
            raise FileError(f"{upload.path!r} could not be recorded: {error.strerror}.") from error

    def _write_record(self, upload: Upload) -> None:
        draft = self.records / new_draft()
        try:
            record = {name: value for name, value in asdict(upload).items() if name != "at"}
            draft.write_text(json.dumps(record), encoding="utf-8")
            draft.rename(self._file(upload.path))
        except OSError:
            draft.unlink(missing_ok=True)
            raise

    def _file(self, path: str) -> Path:
        return self.records / hashlib.sha256(path.encode(errors="surrogatepass")).hexdigest()[:32]


def describe_excess(sizes: Mapping[str, int], room: int) -> str:
    """Return which files do not fit into `room` bytes: those that no other is to blame for, else all."""
    largest = sorted(sizes, key=lambda path: -sizes[path])
    too_large = [path for path in largest if sizes[path] > room]
    shown = (too_large or largest)[:_NAMED_FILES]
    named = ", ".join(f"{_quoted(path)} ({file_size(sizes[path])})" for path in shown)
    if too_large:
        more = len(too_large) - len(shown)
        others = f" and {counted(more, 'more file')}" if more else ""
        verb = "does" if len(too_large) == 1 else "do"
        return f"{named}{others} {verb} not fit: there is room for {file_size(room)}."
    together = f"The {counted(len(sizes), 'file')} have {file_size(sum(sizes.values()))} together"
    return f"{together}, and there is room for {file_size(room)}. The largest: {named}."


@contextmanager
def naming_stored(stored: Sequence[StoredUpload], count: int) -> Iterator[None]:
    """Add to the error of one of `count` files which of them were stored before it."""
    try:
        yield
    except FileError as error:
        if count == 1:
            raise
        if not stored:
            raise type(error)(f"{error} None of the {count} files was stored.") from error
        named = ", ".join(_quoted(one.upload.path) for one in stored[:_NAMED_FILES])
        more = f" and {len(stored) - _NAMED_FILES} more" if len(stored) > _NAMED_FILES else ""
        raise type(error)(
            f"{error} Of the {count} files, {len(stored)} are stored: {named}{more}. The others are not."
        ) from error


def _quoted(path: str) -> str:
    return repr(shorten(path, _NAME_CHARACTERS))


def _pieces(source: BinaryIO, size: int, digest: "hashlib._Hash") -> Iterator[bytes]:
    while size > 0 and (piece := source.read(min(size, _PIECE_BYTES))):
        digest.update(piece)
        size -= len(piece)
        yield piece
