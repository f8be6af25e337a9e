"""How much disk a workspace takes, counted in bounded time whatever has been planted there."""

import errno
import heapq
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from maniple.sandbox.folder import TRIES, allow_owner, open_folder

MAX_LEVELS = 64
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

    What vanishes meanwhile counts nothing; a folder that code has closed is opened to its owner again. Raises
    `PermissionError` when code closes one as fast as that.
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
    root = _open(folder)
    if root is None:
        return
    try:
        yield from _beneath(root, "", 0)
    finally:
        os.close(root)


def _beneath(directory: int, above: str, level: int) -> Iterator[tuple[str, os.stat_result | None]]:
    """One open directory for each level, and None for what lies too deep."""
    with os.scandir(directory) as entries:
        for entry in entries:
            path = f"{above}{entry.name}"
            found = _status(entry.name, directory)
            if found is None:
                continue
            yield path, found
            if stat.S_ISDIR(found.st_mode):
                yield from _folder(directory, path, level + 1)


def _folder(parent: int, path: str, level: int) -> Iterator[tuple[str, os.stat_result | None]]:
    if level > MAX_LEVELS:
        yield path, None
        return
    below = _open(path.rpartition("/")[2], parent)
    if below is None:
        return
    try:
        yield from _beneath(below, f"{path}/", level)
    finally:
        os.close(below)


def _open(name: str | Path, parent: int | None = None) -> int | None:
    """None for what is no folder any more, and for what another user keeps closed, to the code as to us."""
    try:
        return open_folder(name, parent)
    except OSError as error:
        if error.errno == errno.EACCES:
            raise
        return None


def _status(name: str, directory: int) -> os.stat_result | None:
    """None for what is gone; code may close the folder that it is in at any moment."""
    for _ in range(TRIES):
        try:
            return os.stat(name, dir_fd=directory, follow_symlinks=False)
        except PermissionError:
            allow_owner(directory)
        except OSError:
            return None
    raise PermissionError(errno.EACCES, "A folder is closed again and again", name)
