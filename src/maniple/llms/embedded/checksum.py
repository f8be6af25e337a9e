"""Whether a file is the model that was asked for."""

import asyncio
import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import IO

from maniple.llms.embedded.files import ModelFile
from maniple.llms.embedded.progress import Progress

_BLOCK_BYTES = 8 << 20


async def has_digest(path: Path, model: ModelFile, progress: Progress) -> bool:
    """Whether `path` has the model's size and SHA-256; reads the whole file (about 2 s for 1.1 GB)."""
    if await asyncio.to_thread(_size, path) != model.size:
        return False
    digest = hashlib.sha256()
    source = await asyncio.to_thread(path.open, "rb")
    try:
        while done := await asyncio.to_thread(_feed, source, digest):
            progress.step("checking the local model", done, model.size)
    finally:
        source.close()
    return digest.hexdigest() == model.sha256


async def is_verified(path: Path, model: ModelFile, progress: Progress) -> bool:
    """Whether `path` is the model; a yes is remembered in a file beside it, which spares reading it again."""
    if await asyncio.to_thread(_is_remembered, path, model):
        return True
    if not await has_digest(path, model, progress):
        return False
    await asyncio.to_thread(remember, path, model)
    return True


def remember(path: Path, model: ModelFile) -> None:
    """Note beside `path` that it was checked and is the model."""
    # A read-only cache, as in an image that brings the model, only costs the reading at each start.
    with suppress(OSError):
        _marker(path).write_text(json.dumps(_facts(path, model)))


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _feed(source: IO[bytes], digest: "hashlib._Hash") -> int:
    """Digest one block; the offset after it, or 0 at the end."""
    block = source.read(_BLOCK_BYTES)
    digest.update(block)
    return source.tell() if block else 0


def _marker(path: Path) -> Path:
    return path.with_name(f"{path.name}.verified")


def _facts(path: Path, model: ModelFile) -> dict[str, object]:
    stat = path.stat()
    return {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "sha256": model.sha256}


def _is_remembered(path: Path, model: ModelFile) -> bool:
    try:
        return json.loads(_marker(path).read_text()) == _facts(path, model)
    except (OSError, ValueError):
        return False
