"""Opens files beneath a directory whose content nobody vouches for.

Sandboxed code can plant symbolic links, hard links, pipes and devices in its workspace, and can swap
them while the host looks. So the host never resolves a path there: it walks it one component at a time
from an open directory, follows no link, and judges what it has opened, not what it is called. That is what
`openat2` with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS does, without the kernel having to know it.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from maniple.errors import FileError
from maniple.sandbox.account import give_away
from maniple.sandbox.folder import open_folder

MAX_DEPTH = 32
DRAFT = ".maniple-"
"""How the names of files begin that are not whole yet."""
# Without O_NONBLOCK, opening a planted pipe waits for ever.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def components(path: str, *, root: str = "/workspace") -> tuple[str, ...]:
    """The parts of a path that a model wrote; `root` is the directory's name inside the sandbox.

    Raises `FileError` for `..`, for absolute paths beyond `root` and for what is no path at all.
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        raise FileError(f"{path!a} is not a file name that can be written down; choose another.") from None
    relative = path.removeprefix(root) if path == root or path.startswith(root + "/") else path
    if "\0" in path or (relative is path and path.startswith("/")):
        raise FileError(f"{path!r} is outside the workspace; name a file relative to it, such as notes.txt.")
    parts = tuple(part for part in relative.split("/") if part not in ("", "."))
    if ".." in parts:
        raise FileError(f"{path!r} leads out of the workspace; name a file without `..`.")
    if len(parts) > MAX_DEPTH:
        raise FileError(f"{path!r} has more than {MAX_DEPTH} levels; use fewer.")
    return parts


@contextmanager
def open_directory(root: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """The descriptor of a directory beneath `root`; `make` makes the missing ones on the way.

    One that code has closed is opened to its owner again.
    """
    current = open_folder(root)
    try:
        for part in parts:
            made = make and _make_directory(part, current)
            below = open_folder(part, current)
            os.close(current)
            current = below
            if made:
                give_away(current)
        yield current
    finally:
        os.close(current)


def _make_directory(name: str, parent: int) -> bool:
    try:
        os.mkdir(name, 0o755, dir_fd=parent)
    except FileExistsError:
        return False
    return True


@contextmanager
def open_regular(name: str, directory: int) -> Iterator[int]:
    """The descriptor of a regular file with one name, for reading; raises `FileError` for any other."""
    descriptor = os.open(name, _READ, dir_fd=directory)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError
        # A second name may be a file of someone else's, linked here.
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise FileError(f"{name!r} is not an ordinary file with one name, so it is not read.")
        yield descriptor
    finally:
        os.close(descriptor)


def replace(name: str, directory: int, pieces: Iterable[bytes], mode: int | None = None) -> None:
    """Write a whole new file, then give it its name: readers see the old content or all of the new.

    Without a `mode`, a program that is replaced can still be executed.
    """
    draft = f"{DRAFT}{os.urandom(8).hex()}"
    descriptor = os.open(draft, _CREATE, 0o644, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            give_away(descriptor)
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fchmod(descriptor, _mode(name, directory) if mode is None else mode)
            os.fsync(descriptor)
        os.rename(draft, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:  # whatever happened, no draft is left
        with suppress(OSError):
            os.unlink(draft, dir_fd=directory)
        raise


def _mode(name: str, directory: int) -> int:
    with suppress(OSError):
        found = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
        if stat.S_ISREG(found):
            return 0o644 | found & 0o111
    return 0o644
