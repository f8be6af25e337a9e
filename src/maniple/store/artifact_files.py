"""The contents of artifacts in a folder, as files named by id."""

import io
import os
import stat
import time
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from maniple.errors import FileError
from maniple.store.artifact_contents import (
    CHUNK_BYTES,
    ORPHAN_SECONDS,
    ContentDigest,
    WrittenFile,
    missing_content,
)
from maniple.store.error_translation import translate_errors
from maniple.store.executors import run_in_thread

DRAFT_SUFFIX = ".part"
OWNERSHIP_MARK = ".own"
"""An empty file: younger files in its directory belong to one database only."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe that sandboxed code has planted blocks.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class ArtifactFiles:
    """See `ArtifactContents`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def address(self) -> str:
        return str(self.directory)

    async def write(self, artifact_id: str, data: bytes | Path | BinaryIO) -> WrittenFile:
        return await run_in_thread(lambda: self._write(artifact_id, data))

    async def require(self, artifact_id: str, size: int) -> None:
        await run_in_thread(lambda: self._require(artifact_id, size))

    async def stream(self, artifact_id: str, start: int, stop: int) -> AsyncGenerator[bytes]:
        file = await run_in_thread(lambda: self._open(artifact_id, start))
        try:
            while start < stop:
                wanted = min(stop - start, CHUNK_BYTES)
                piece = await run_in_thread(lambda wanted=wanted: file.read(wanted))
                if not piece:
                    raise missing_content(artifact_id)
                start += len(piece)
                yield piece
        finally:
            file.close()

    async def missing(self, artifacts: Iterable[tuple[str, int]]) -> list[str]:
        return await run_in_thread(
            lambda: [name for name, size in artifacts if not _is_intact(self.directory / name, size)]
        )

    async def remove(self, artifact_ids: Iterable[str]) -> None:
        names = list(artifact_ids)
        if names:
            await run_in_thread(lambda: self._remove(names))

    async def sweep(self, known: set[str]) -> None:
        """Delete what a crash has left.

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
                with open_source(data) as source, os.fdopen(os.open(draft, _CREATE, 0o600), "wb") as target:
                    written = _copy(source, target)
                    target.flush()
                    os.fsync(target.fileno())
                draft.rename(self.directory / artifact_id)
            except BaseException:  # a draft is never left
                draft.unlink(missing_ok=True)
                raise
            _sync_directory(self.directory)
        return written

    def _require(self, artifact_id: str, size: int) -> None:
        if not _is_intact(self.directory / artifact_id, size):
            # A folder that cannot be read is no lost content.
            with translate_errors(self.directory), suppress(FileNotFoundError):
                os.close(os.open(self.directory, _DIRECTORY))
            raise missing_content(artifact_id)

    def _open(self, artifact_id: str, start: int) -> BinaryIO:
        with translate_errors(self.directory):
            try:
                file = os.fdopen(os.open(self.directory / artifact_id, _READ), "rb")
            except FileNotFoundError:
                raise missing_content(artifact_id) from None
            file.seek(start)
        return file

    def _remove(self, names: list[str]) -> None:
        for name in names:
            with suppress(OSError):
                (self.directory / name).unlink(missing_ok=True)


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
def open_source(data: bytes | Path | BinaryIO) -> Generator[BinaryIO]:
    """Open what is to be stored. Raises `FileError` for a path that is not an ordinary file with one name."""
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
    digest = ContentDigest()
    while chunk := source.read(CHUNK_BYTES):
        digest.add(chunk)
        target.write(chunk)
    return digest.result()


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, _DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
