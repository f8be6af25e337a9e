"""The files below a folder, without following links out of it."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_FILES = 5_000
MAX_FILE_BYTES = 20_000_000


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells that a file has changed."""

    modified_ns: int
    size: int


def files_below(folder: Path, suffixes: frozenset[str]) -> Iterator[tuple[str, Stamp]]:
    """Yield the names, with `/` between folders, of at most `MAX_FILES` regular files. Blocks on disk.

    Hidden files and folders are left out, as are links, other suffixes and files over `MAX_FILE_BYTES`.
    """
    left = MAX_FILES
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(place, name)
            if name.startswith(".") or path.suffix.lower() not in suffixes:
                continue
            try:
                found = path.lstat()
            except OSError:
                continue  # it has gone meanwhile
            if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_FILE_BYTES:
                continue
            if left == 0:
                return
            left -= 1
            yield path.relative_to(folder).as_posix(), Stamp(found.st_mtime_ns, found.st_size)


def read_below(folder: Path, name: str) -> bytes:
    """Return the content of the regular file `name`; raises `OSError`. Blocks on disk.

    No part of the way may be a link: each folder is opened in the one above it.
    """
    *folders, last = name.split("/")
    if not all((*folders, last)) or any(part in (".", "..") for part in (*folders, last)):
        raise FileNotFoundError(name)
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in folders:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
            os.close(place)
            place = below
        # A pipe that somebody puts in its place would be waited for.
        file = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)
    finally:
        os.close(place)
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise FileNotFoundError(name)
        return opened.read(MAX_FILE_BYTES)
