"""How much disk a workspace takes, counted in bounded time whatever has been planted there."""

import heapq
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MAX_LEVELS = 64
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAMED = 3


@dataclass(frozen=True, slots=True)
class DiskUse:
    """`size_bytes` are blocks, so that a hole costs nothing; `entries` are files and folders of any kind.

    `largest` are (path, bytes), largest first, of what was seen. `too_deep` names a folder below
    `MAX_LEVELS` others, which was not looked into.
    """

    size_bytes: int
    entries: int
    largest: tuple[tuple[str, int], ...]
    too_deep: str = ""


def measure(folder: Path, max_bytes: int, max_entries: int) -> DiskUse:
    """Count until the end or until a limit is passed. Blocks on disk; follows no link.

    What vanishes meanwhile counts nothing; a folder that code has closed is opened to its owner again.
    """
    size, entries = 0, 0
    largest: list[tuple[int, str]] = []
    linked: set[int] = set()
    for path, found in _walk(folder):
        entries += 1
        if found is None:
            return DiskUse(size, entries, _sorted(largest), path)
        # A file with two names takes its blocks once.
        if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
            if found.st_ino in linked:
                continue
            linked.add(found.st_ino)
        taken = found.st_blocks * 512
        size += taken
        if not stat.S_ISDIR(found.st_mode):
            (heapq.heappush if len(largest) < _NAMED else heapq.heappushpop)(largest, (taken, path))
        if size > max_bytes or entries > max_entries:
            break
    return DiskUse(size, entries, _sorted(largest))


def _sorted(largest: list[tuple[int, str]]) -> tuple[tuple[str, int], ...]:
    return tuple((path, size) for size, path in sorted(largest, reverse=True))


def _walk(folder: Path) -> Iterator[tuple[str, os.stat_result | None]]:
    with suppress(OSError):
        root = os.open(folder, _DIRECTORY)
        try:
            yield from _beneath(root, "", 0)
        finally:
            os.close(root)


def _beneath(directory: int, above: str, level: int) -> Iterator[tuple[str, os.stat_result | None]]:
    """One open directory for each level, and None for what lies too deep."""
    with os.scandir(directory) as entries:
        for entry in entries:
            path = f"{above}{entry.name}"
            with suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                yield path, found
                if stat.S_ISDIR(found.st_mode):
                    yield from _folder(directory, path, level + 1)


def _folder(parent: int, path: str, level: int) -> Iterator[tuple[str, os.stat_result | None]]:
    if level > MAX_LEVELS:
        yield path, None
        return
    below = open_folder(path.rpartition("/")[2], parent)
    try:
        yield from _beneath(below, f"{path}/", level)
    finally:
        os.close(below)


def open_folder(name: str, parent: int) -> int:
    """Open a folder for reading; one that its owner has closed is opened to the owner again.

    Where the server and the code are one user, the code could hide what it writes.
    """
    try:
        return os.open(name, _DIRECTORY, dir_fd=parent)
    except PermissionError:
        _open_to_owner(name, parent)
        return os.open(name, _DIRECTORY, dir_fd=parent)


def _open_to_owner(name: str, parent: int) -> None:
    """Through a descriptor, because the name may be a link by now, and chmod(2) follows links."""
    closed = os.open(name, os.O_PATH | _DIRECTORY, dir_fd=parent)
    try:
        Path(f"/proc/self/fd/{closed}").chmod(0o700)
    finally:
        os.close(closed)
