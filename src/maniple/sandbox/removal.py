"""Removes a directory whose content nobody vouches for, however deep it is."""

import os
import stat
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from maniple.sandbox.folder import TO_CHANGE, open_folder


def remove_tree(folder: Path) -> None:
    """Remove `folder` with all that is in it; links are removed and not followed. Blocks on disk.

    A tree that code has made can be deeper than a path is long and than this program may recurse, so each
    folder in it is first moved to the top; one that is closed is opened to its owner. Nothing must write
    there meanwhile. Raises `OSError`.
    """
    # Random, because what is there already has names that code chose.
    start = int.from_bytes(os.urandom(8), "big")
    names = (f".removed-{number:x}" for number in count(start))
    root = open_folder(folder, needed=TO_CHANGE)
    try:
        pending = _emptied(root, root, names)
        while pending:
            name = pending.pop()
            inside = open_folder(name, root, TO_CHANGE)
            try:
                pending += _emptied(inside, root, names)
            finally:
                os.close(inside)
            os.rmdir(name, dir_fd=root)
    finally:
        os.close(root)
    folder.rmdir()


def _emptied(directory: int, root: int, names: Iterator[str]) -> list[str]:
    """Unlink the files of `directory` and move its folders to `root`; their names there."""
    moved = []
    with os.scandir(directory) as entries:
        found = [(entry.name, entry.stat(follow_symlinks=False).st_mode) for entry in entries]
    for name, mode in found:
        if not stat.S_ISDIR(mode):
            os.unlink(name, dir_fd=directory)
        elif directory == root:
            moved.append(name)
        else:
            moved.append(next(names))
            os.close(open_folder(name, directory, TO_CHANGE))  # without which it cannot be moved
            os.rename(name, moved[-1], src_dir_fd=directory, dst_dir_fd=root)
    return moved
