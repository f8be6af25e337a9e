"""The contents of artifacts: a directory of files named by id, which nobody but the store writes to."""

import hashlib
import io
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from maniple.errors import FileError
from maniple.store.faults import told
from maniple.store.waiting import in_thread

CHUNK_BYTES = 1024 * 1024
ORPHAN_SECONDS = 24 * 3600
NAME_BYTES = 200
DRAFT = ".part"
OWN = ".own"
"""An empty file: what is younger than it in its directory belongs to one database alone."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a planted pipe waits for ever.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Also the marks that turn the direction of writing: they make `gpj.exe` look like `exe.jpg`."""


@dataclass(frozen=True, slots=True)
class Written:
    """What came to be on disk: bytes, and their SHA-256 in hex."""

    size: int
    sha256: str


class ArtifactFiles:
    """Writes, finds and deletes the files.

    `earlier` is a directory that databases once shared: files there are found and deleted by their id, but
    none is written, and what is unknown is somebody else's.
    """

    def __init__(self, directory: Path, earlier: Path | None = None) -> None:
        self.directory = directory
        self._directories = (directory,) if earlier is None else (directory, earlier)

    async def write(self, artifact_id: str, data: bytes | Path | BinaryIO) -> Written:
        """Write a new file, durably and under its name only when it is whole."""
        return await in_thread(lambda: self._write(artifact_id, data))

    async def path(self, artifact_id: str, size: int) -> Path:
        """Return where a file lies; raises `FileError` unless it is an ordinary one of this size."""
        return await in_thread(lambda: self._inspect(artifact_id, size))

    async def missing(self, artifacts: Iterable[tuple[str, int]]) -> list[str]:
        """Return which of these (id, size) cannot be opened."""
        return await in_thread(lambda: [name for name, size in artifacts if self._whole(name, size) is None])

    async def remove(self, artifact_ids: Iterable[str]) -> None:
        """Delete files; what cannot be deleted stays until `sweep`."""
        names = list(artifact_ids)
        if names:
            await in_thread(lambda: self._remove(names))

    async def sweep(self, known: set[str]) -> None:
        """Delete files of no artifact: left by a crash, so only those of a day ago and before.

        Whole ones that were there before the directory was one database's alone are left: another one, which
        shared it, may know them.
        """

        def sweep() -> None:
            oldest = time.time() - ORPHAN_SECONDS
            with suppress(FileNotFoundError), os.scandir(self.directory) as entries:
                since = self._own_since()
                for entry in entries:
                    written = entry.stat(follow_symlinks=False).st_mtime
                    ours = written >= since or entry.name.endswith(DRAFT)
                    stray = entry.name not in known and written < oldest and ours and entry.name != OWN
                    if stray and not entry.is_dir(follow_symlinks=False):
                        Path(entry.path).unlink()

        await in_thread(sweep)

    def _own_since(self) -> float:
        mark = self.directory / OWN
        with suppress(FileExistsError):
            mark.touch(mode=0o600, exist_ok=False)
        return mark.stat().st_mtime

    def _write(self, artifact_id: str, data: bytes | Path | BinaryIO) -> Written:
        with told(self.directory):
            with suppress(FileExistsError):
                self.directory.mkdir(mode=0o700, parents=True)
                self._own_since()
            draft = self.directory / f"{artifact_id}{DRAFT}"
            try:
                with _source(data) as source, os.fdopen(os.open(draft, _CREATE, 0o600), "wb") as target:
                    written = _copy(source, target)
                    target.flush()
                    os.fsync(target.fileno())
                draft.rename(self.directory / artifact_id)
            except BaseException:  # whatever happened, no draft is left
                draft.unlink(missing_ok=True)
                raise
            _sync_directory(self.directory)
        return written

    def _inspect(self, artifact_id: str, size: int) -> Path:
        path = self._whole(artifact_id, size)
        if path is None:
            raise FileError(f"The content of artifact {artifact_id} is gone or was changed on disk.")
        return path

    def _whole(self, artifact_id: str, size: int) -> Path | None:
        paths = (directory / artifact_id for directory in self._directories)
        return next((path for path in paths if _is_whole(path, size)), None)

    def _remove(self, names: list[str]) -> None:
        for path in [directory / name for name in names for directory in self._directories]:
            with suppress(OSError):
                path.unlink(missing_ok=True)


def safe_name(name: str) -> str:
    """Return what a client may save a file as: one path component without control characters."""
    printable = _CONTROL.sub("", name.encode(errors="replace").decode()).replace("\\", "/")
    last = PurePosixPath(printable).name.strip().lstrip(".")
    return last.encode()[:NAME_BYTES].decode(errors="ignore") or "artifact"


def _is_whole(path: Path, size: int) -> bool:
    try:
        descriptor = os.open(path.parent, _DIRECTORY)
        try:
            found = os.stat(path.name, dir_fd=descriptor, follow_symlinks=False)
        finally:
            os.close(descriptor)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_size == size


@contextmanager
def _source(data: bytes | Path | BinaryIO) -> Iterator[BinaryIO]:
    if isinstance(data, bytes):
        yield io.BytesIO(data)
    elif isinstance(data, Path):
        with closing(os.fdopen(_open_regular(data), "rb")) as file:
            yield file
    else:
        yield data


def _open_regular(path: Path) -> int:
    """Open a path of which no part is a symbolic link: sandboxed code plants them, also while we look."""
    try:
        return _descend(path)
    except (NotADirectoryError, IsADirectoryError, FileNotFoundError) as error:
        raise FileError(f"{path} cannot be kept: {error.strerror}.") from None
    except OSError as error:
        # What O_NOFOLLOW says of a link, ELOOP, has no class of its own.
        raise FileError(
            f"{path} cannot be kept: it is a symbolic link or unreadable ({error.strerror})."
        ) from None


def _descend(path: Path) -> int:
    anchor, *parts = path.absolute().parts
    if ".." in parts or not parts:
        raise FileError(f"{path} cannot be kept: name the file itself, without `..`.")
    current = os.open(anchor, _DIRECTORY)
    try:
        for part in parts[:-1]:
            below = os.open(part, _DIRECTORY, dir_fd=current)
            os.close(current)
            current = below
        descriptor = os.open(parts[-1], _READ, dir_fd=current)
    finally:
        os.close(current)
    found = os.fstat(descriptor)
    # A second name may be a file of someone else's, linked here.
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        os.close(descriptor)
        raise FileError(f"{path} cannot be kept: it is not an ordinary file with one name.")
    return descriptor


def _copy(source: BinaryIO, target: BinaryIO) -> Written:
    digest, size = hashlib.sha256(), 0
    while chunk := source.read(CHUNK_BYTES):
        digest.update(chunk)
        target.write(chunk)
        size += len(chunk)
    return Written(size, digest.hexdigest())


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, _DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
