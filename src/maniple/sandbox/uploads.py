"""What the user puts into a workspace."""

import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from maniple.errors import FileError
from maniple.sandbox.beneath import DRAFT
from maniple.sandbox.workspace import Workspace

MOST_UPLOADS = 1_000
NAME_BYTES = 200
_PIECE_BYTES = 1024 * 1024
_ENDS = re.compile(r"\A[\s.]+|[\s.]+\Z")
# Controls, halves of characters, and what turns the direction of writing: `gpj.exe` would be `exe.jpg`.
_UNWANTED = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Upload:
    """A file as the user gave it: its path in the workspace, bytes, and SHA-256 in hex."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Stored:
    """An upload, and whether it replaced a file of its name."""

    upload: Upload
    replaced: bool


@dataclass(frozen=True, slots=True)
class Uploads:
    """The files that the user gave to one thread. Every method blocks on disk.

    `records` is a folder outside of the workspace with a small file for each.
    """

    workspace: Workspace
    records: Path

    def add(self, files: Iterable[tuple[str, BinaryIO]]) -> list[Stored]:
        """Copy open files, from their beginnings, to the `file_name` of each, replacing one of the same name.

        Raises `FileError`, and `WorkspaceFull` before the first is copied if not all have room.
        """
        named = [(file_name(name), source, source.seek(0, os.SEEK_END)) for name, source in files]
        self.workspace.check_room(sum(size - (self.workspace.size(path) or 0) for path, _, size in named))
        return [self._add(path, source, size) for path, source, size in named]

    def _add(self, path: str, source: BinaryIO, size: int) -> Stored:
        source.seek(0)
        replaced = self.workspace.size(path) is not None
        digest = hashlib.sha256()
        self.workspace.write_pieces(path, _pieces(source, size, digest), size)
        upload = Upload(path, self.workspace.size(path) or 0, digest.hexdigest())
        self._record(upload)
        return Stored(upload, replaced)

    def known(self) -> list[Upload]:
        """Return what was given and still has its name and size there, oldest first."""
        return [one for one in self._recorded() if self.workspace.size(one.path) == one.size]

    def forget(self, path: str) -> None:
        """Remove what is known of a file; the file itself stays."""
        self._file(path).unlink(missing_ok=True)

    def _recorded(self) -> list[Upload]:
        found: list[tuple[int, Upload]] = []
        # A record that cannot be read names no upload: its file counts as one of the team's.
        with suppress(OSError), os.scandir(self.records) as entries:
            for entry in entries:
                with suppress(OSError, ValueError, TypeError):
                    record = Upload(**json.loads(Path(entry.path).read_bytes()))
                    found.append((entry.stat().st_mtime_ns, record))
        return [record for _, record in sorted(found, key=lambda one: (one[0], one[1].path))]

    def _record(self, upload: Upload) -> None:
        draft = self.records / f"{DRAFT}{os.urandom(8).hex()}"
        try:
            self.records.mkdir(mode=0o700, parents=True, exist_ok=True)
            if sum(1 for _ in self.records.iterdir()) < MOST_UPLOADS:
                draft.write_text(json.dumps(asdict(upload)), encoding="utf-8")
                draft.rename(self._file(upload.path))
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise FileError(f"{upload.path!r} could not be noted: {error.strerror}.") from error

    def _file(self, path: str) -> Path:
        return self.records / hashlib.sha256(path.encode(errors="surrogatepass")).hexdigest()[:32]


def file_name(name: str) -> str:
    """Return what a file is called in the workspace: the last part of `name`, neither hidden nor a trick.

    Directories (of Windows, too), control characters, and dots and blanks at either end are taken away; a
    name over 200 bytes is cut before its ending.
    """
    last = _UNWANTED.sub("", name).replace("\\", "/").rstrip("/").rpartition("/")[2]
    clean = _ENDS.sub("", unicodedata.normalize("NFC", last)) or "upload"
    stem, dot, ending = clean.rpartition(".")
    if len(clean.encode()) <= NAME_BYTES:
        return clean
    if not dot or len(ending.encode()) > 20:
        stem, dot, ending = clean, "", ""
    room = NAME_BYTES - len((dot + ending).encode())
    return _ENDS.sub("", stem.encode()[:room].decode(errors="ignore")) + dot + ending


def _pieces(source: BinaryIO, size: int, digest: "hashlib._Hash") -> Iterator[bytes]:
    while size > 0 and (piece := source.read(min(size, _PIECE_BYTES))):
        digest.update(piece)
        size -= len(piece)
        yield piece
