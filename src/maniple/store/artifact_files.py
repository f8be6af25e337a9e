"""The contents of artifacts: a directory of files named by id, which only the store writes to."""

import hashlib
import io
import os
import re
import stat
import time
from collections.abc import Generator, Iterable
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from maniple.errors import FileError
from maniple.store.error_translation import translate_errors
from maniple.store.executors import run_in_thread

CHUNK_BYTES = 1024 * 1024
ORPHAN_SECONDS = 24 * 3600
NAME_BYTES = 200
DRAFT_SUFFIX = ".part"
OWNERSHIP_MARK = ".own"
"""An empty file: younger files in its directory belong to one database only."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe that sandboxed code has planted blocks.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Includes the bidirectional marks, which make `gpj.exe` look like `exe.jpg`."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that was written: its size in bytes and its SHA-256 in hex."""

    size: int
    sha256: str


class ArtifactFiles:
    """Writes, finds and deletes the files in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    async def write(self, artifact_id: str, data: bytes | Path | BinaryIO) -> WrittenFile:
        """Write a new file durably. It gets its name only when it is complete."""
        return await run_in_thread(lambda: self._write(artifact_id, data))

    async def path(self, artifact_id: str, size: int) -> Path:
        """Return the path of a file; raises `FileError` unless it is an ordinary one of this size."""
        return await run_in_thread(lambda: self._inspect(artifact_id, size))

    async def missing(self, artifacts: Iterable[tuple[str, int]]) -> list[str]:
        """Return the ids of those (id, size) pairs whose file is missing or has another size."""
        return await run_in_thread(
            lambda: [name for name, size in artifacts if not _is_intact(self.directory / name, size)]
        )

    async def remove(self, artifact_ids: Iterable[str]) -> None:
        """Delete files. One that cannot be deleted stays until `sweep`."""
        names = list(artifact_ids)
        if names:
            await run_in_thread(lambda: self._remove(names))

    async def sweep(self, known: set[str]) -> None:
        """Delete files that belong to no artifact and are older than a day: a crash has left them.

        Complete files from before the directory belonged to one database stay, because another database that
        shared the directory may refer to them.
        """

        def sweep() -> None:
            oldest = time.time() - ORPHAN_SECONDS
            with suppress(FileNotFoundError), os.scandir(self.directory) as entries:
                since = self._own_since()
                for entry in entries:
                    written = entry.stat(follow_symlinks=False).st_mtime
                    ours = written >= since or entry.name.endswith(DRAFT_SUFFIX)
                    stray = (
                        entry.name not in known and written < oldest and ours and entry.name != OWNERSHIP_MARK
                    )
                    if stray and not entry.is_dir(follow_symlinks=False):
                        Path(entry.path).unlink()

        await run_in_thread(sweep)

    def _own_since(self) -> float:
        mark = self.directory / OWNERSHIP_MARK
        with suppress(FileExistsError):
            mark.touch(mode=0o600, exist_ok=False)
        return mark.stat().st_mtime

    def _write(self, artifact_id: str, data: bytes | Path | BinaryIO) -> WrittenFile:
        with translate_errors(self.directory):
            with suppress(FileExistsError):
                self.directory.mkdir(mode=0o700, parents=True)
                self._own_since()
            draft = self.directory / f"{artifact_id}{DRAFT_SUFFIX}"
            try:
                with _source(data) as source, os.fdopen(os.open(draft, _CREATE, 0o600), "wb") as target:
                    written = _copy(source, target)
                    target.flush()
                    os.fsync(target.fileno())
                draft.rename(self.directory / artifact_id)
            except BaseException:  # a draft is never left
                draft.unlink(missing_ok=True)
                raise
            _sync_directory(self.directory)
        return written

    def _inspect(self, artifact_id: str, size: int) -> Path:
        path = self.directory / artifact_id
        if not _is_intact(path, size):
            raise FileError(f"The content of artifact {artifact_id} is missing or was changed on disk.")
        return path

    def _remove(self, names: list[str]) -> None:
        for name in names:
            with suppress(OSError):
                (self.directory / name).unlink(missing_ok=True)


def safe_name(name: str) -> str:
    """Return a safe file name: the last path component without control characters."""
    printable = _CONTROL.sub("", name.encode(errors="replace").decode()).replace("\\", "/")
    last = PurePosixPath(printable).name.strip().lstrip(".")
    return last.encode()[:NAME_BYTES].decode(errors="ignore") or "artifact"


def _is_intact(path: Path, size: int) -> bool:
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
def _source(data: bytes | Path | BinaryIO) -> Generator[BinaryIO]:
    if isinstance(data, bytes):
        yield io.BytesIO(data)
    elif isinstance(data, Path):
        with closing(os.fdopen(_open_regular(data), "rb")) as file:
            yield file
    else:
        yield data


def _open_regular(path: Path) -> int:
    """Open a path that contains no symbolic link. Sandboxed code may create one at any moment."""
    try:
        return _descend(path)
    except (NotADirectoryError, IsADirectoryError, FileNotFoundError) as error:
        raise FileError(f"{path} cannot be stored: {error.strerror}.") from None
    except OSError as error:
        # O_NOFOLLOW fails with ELOOP on a link, which has no exception class.
        raise FileError(
            f"{path} cannot be stored: it is a symbolic link or unreadable ({error.strerror})."
        ) from None


def _descend(path: Path) -> int:
    anchor, *parts = path.absolute().parts
    if ".." in parts or not parts:
        raise FileError(f"{path} cannot be stored: the path must name a file and contain no `..`.")
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
    # A file with a second name may be a hard link to another user's file.
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        os.close(descriptor)
        raise FileError(f"{path} cannot be stored: it is not an ordinary file with one name.")
    return descriptor


def _copy(source: BinaryIO, target: BinaryIO) -> WrittenFile:
    digest, size = hashlib.sha256(), 0
    while chunk := source.read(CHUNK_BYTES):
        digest.update(chunk)
        target.write(chunk)
        size += len(chunk)
    return WrittenFile(size, digest.hexdigest())


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, _DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
