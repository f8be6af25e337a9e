"""What holds the contents of artifacts: a folder or a bucket. Only the store writes to it."""

import hashlib
import re
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Protocol

from maniple.errors import FileError

CHUNK_BYTES = 1024 * 1024
ORPHAN_SECONDS = 24 * 3600
NAME_BYTES = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Includes the bidirectional marks, which make `gpj.exe` look like `exe.jpg`."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A content that was written: its size in bytes and its SHA-256 in hex."""

    size: int
    sha256: str


class ArtifactContents(Protocol):
    """Contents by artifact id. What cannot be reached, read or written raises `StoreError`."""

    @property
    def address(self) -> str:
        """The folder or the URL, for messages."""
        ...

    async def write(self, artifact_id: str, data: bytes | Path | BinaryIO) -> WrittenFile:
        """Write a new content durably. It exists only when it is complete.

        Raises `FileError` for a path that is not an ordinary file with one name.
        """
        ...

    async def require(self, artifact_id: str, size: int) -> None:
        """Raise `FileError` unless there is a content of this size (bytes)."""
        ...

    def stream(self, artifact_id: str, start: int, stop: int) -> AsyncGenerator[bytes]:
        """Yield the bytes from `start` until before `stop`; raises `FileError` when they are not there."""
        ...

    async def missing(self, artifacts: Iterable[tuple[str, int]]) -> list[str]:
        """Return the ids of those (id, size) pairs whose content is missing or has another size."""
        ...

    async def remove(self, artifact_ids: Iterable[str]) -> None:
        """Delete contents. One that cannot be deleted stays until `sweep`."""
        ...

    async def sweep(self, known: set[str]) -> None:
        """Delete what belongs to no artifact and is older than a day: a crash has left it."""
        ...


@dataclass(frozen=True, slots=True)
class ArtifactContent:
    """The content of one artifact: `size` bytes, read as a whole or in parts."""

    size: int
    _contents: ArtifactContents
    _artifact_id: str

    async def read(self) -> bytes:
        """Return all of it. Raises `FileError` when it was deleted or changed meanwhile, and `StoreError`."""
        pieces: list[bytes] = []
        async with aclosing(self.stream()) as stream:
            async for piece in stream:
                pieces.append(piece)
        return b"".join(pieces)

    def stream(self, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes]:
        """Yield the bytes from `start` until before `stop` (default: all). Raises as `read`."""
        return self._contents.stream(self._artifact_id, start, self.size if stop is None else stop)


@dataclass(slots=True)
class ContentDigest:
    """Counts and hashes a content while it is copied."""

    _size: int = 0
    _sha256: Any = field(default_factory=hashlib.sha256)

    def add(self, chunk: bytes) -> None:
        """Add the next bytes."""
        self._size += len(chunk)
        self._sha256.update(chunk)

    def result(self) -> WrittenFile:
        """Return what was written."""
        return WrittenFile(self._size, self._sha256.hexdigest())


async def open_content(contents: ArtifactContents, artifact_id: str, size: int) -> ArtifactContent:
    """Return the content of an artifact; raises `FileError` unless it is there and of its size."""
    await contents.require(artifact_id, size)
    return ArtifactContent(size, contents, artifact_id)


def missing_content(artifact_id: str) -> FileError:
    """Return the error for a content that is not there, or not of its size."""
    return FileError(f"The content of artifact {artifact_id} is missing or was changed.")


def safe_name(name: str) -> str:
    """Return a safe file name: the last path component without control characters."""
    printable = _CONTROL.sub("", name.encode(errors="replace").decode()).replace("\\", "/")
    last = PurePosixPath(printable).name.strip().lstrip(".")
    return last.encode()[:NAME_BYTES].decode(errors="ignore") or "artifact"
