"""Opens, measures and removes files in a directory that untrusted code can write to.

Sandboxed code can plant symbolic links, hard links, pipes and devices in its workspace, and can swap them
while the host looks. So the host never resolves a path there: it opens one component at a time from an open
directory, follows no link, and checks the opened file instead of its name. `openat2` with RESOLVE_BENEATH and
RESOLVE_NO_SYMLINKS does the same, but older kernels lack it.

Code can also close folders (`chmod 000`): to hide files from the watchdog, from listings and from removal, or
to lock out the next session. No mode of a folder in a workspace is binding; the host gives the owner its
rights back.
"""

import ctypes
import errno
import heapq
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

from maniple.errors import FileError
from maniple.workspace.account import give_away

MAX_DEPTH = 32
DRAFT = ".maniple-"
"""The prefix of files that are not complete yet."""
# Without O_NONBLOCK, opening a planted pipe blocks forever.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def new_draft() -> str:
    """Return the name of a file that is not complete yet."""
    return f"{DRAFT}{os.urandom(8).hex()}"


def split_path(path: str, *, root: str = "/workspace") -> tuple[str, ...]:
    """Split a path that a model wrote; `root` is the directory's name inside the sandbox.

    Raises `FileError` for `..`, for absolute paths outside `root` and for invalid text.
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        raise FileError(f"{path!a} is not a valid file name; choose another.") from None
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
    """Yield the descriptor of a directory below `root`; `make` creates missing directories of the path.

    A folder that code has closed is opened to its owner again.
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
    """Yield the descriptor of a regular file with one name, for reading; raises `FileError` for any other."""
    descriptor = os.open(name, _READ, dir_fd=directory)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError
        # A hard link may lead to another user's file.
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise FileError(f"{name!r} is not an ordinary file with one name, so it is not read.")
        yield descriptor
    finally:
        os.close(descriptor)


def replace_file(
    name: str, directory: int, pieces: Iterable[bytes], mode: int | None = None, *, is_new: bool = False
) -> None:
    """Replace a file atomically: readers see the old content or all of the new.

    Without a `mode`, an executable file stays executable. With `is_new`, raises `FileExistsError` if
    something has the name, even if it came just now.
    """
    draft = new_draft()
    descriptor = os.open(draft, _CREATE, 0o644, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            give_away(descriptor)
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fchmod(descriptor, _mode(name, directory) if mode is None else mode)
            os.fsync(descriptor)
        if is_new:
            rename_to_free_name(draft, name, directory, directory)
        else:
            os.rename(draft, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:  # no draft is left behind
        with suppress(OSError):
            os.unlink(draft, dir_fd=directory)
        raise


def _mode(name: str, directory: int) -> int:
    with suppress(OSError):
        found = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
        if stat.S_ISREG(found):
            return 0o644 | found & 0o111
    return 0o644


_RENAME_NOREPLACE = 1
# The system or the file system has no such rename.
_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP})


def rename_to_free_name(old: str, new: str, old_directory: int, new_directory: int) -> None:
    """Rename an entry; raises `FileExistsError` if something has the new name, even if it came just now."""
    if (renameat2 := _load_renameat2()) is not None:
        names = os.fsencode(old), os.fsencode(new)
        if renameat2(old_directory, names[0], new_directory, names[1], _RENAME_NOREPLACE) == 0:
            return
        number = ctypes.get_errno()
        if number not in _UNSUPPORTED:
            raise OSError(number, os.strerror(number), new)
    _rename_by_claiming(old, new, old_directory, new_directory)


@cache
def _load_renameat2() -> Callable[[int, bytes, int, bytes, int], int] | None:
    """Return renameat2(2); None where the C library lacks it."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is not None:
        renameat2.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    return renameat2


def _rename_by_claiming(old: str, new: str, old_directory: int, new_directory: int) -> None:
    """Rename with calls that fail for an existing name: a second link to a file, a new empty folder."""
    if not stat.S_ISDIR(os.stat(old, dir_fd=old_directory, follow_symlinks=False).st_mode):
        os.link(old, new, src_dir_fd=old_directory, dst_dir_fd=new_directory, follow_symlinks=False)
        os.unlink(old, dir_fd=old_directory)
        return
    os.mkdir(new, dir_fd=new_directory)
    try:
        os.rename(old, new, src_dir_fd=old_directory, dst_dir_fd=new_directory)
    except OSError:
        with suppress(OSError):  # code may have put something into it
            os.rmdir(new, dir_fd=new_directory)
        raise


TO_READ = stat.S_IRUSR | stat.S_IXUSR
TO_CHANGE = stat.S_IRWXU
TRIES = 20
"""How often the host reopens a folder that code keeps closing."""
_DIRECTORY = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_folder(name: str | Path, parent: int | None = None, needed: int = TO_READ) -> int:
    """Open a folder, give its owner the rights `needed` and return the descriptor; follows no link.

    Raises `PermissionError`: with EPERM for a closed folder of another user, with EACCES for one that code
    keeps closing. Raises other kinds of `OSError` as `os.open` does.
    """
    is_closed = False
    for _ in range(TRIES):
        try:
            if is_closed:
                _reopen_to_owner(name, parent)
            return _opened(name, parent, needed)
        except PermissionError as error:
            if error.errno == errno.EPERM:
                raise
            is_closed = True
    raise PermissionError(errno.EACCES, "A folder is closed again and again", str(name))


def allow_owner(folder: int, needed: int = TO_READ) -> None:
    """Give the owner of an open folder all rights in it if one of those `needed` is missing."""
    mode = os.fstat(folder).st_mode
    if mode & needed != needed:
        os.fchmod(folder, stat.S_IMODE(mode) | TO_CHANGE)


def _opened(name: str | Path, parent: int | None, needed: int) -> int:
    folder = os.open(name, os.O_RDONLY | _DIRECTORY, dir_fd=parent)
    try:
        allow_owner(folder, needed)
    except OSError:
        os.close(folder)
        raise
    return folder


def _reopen_to_owner(name: str | Path, parent: int | None) -> None:
    """Change the mode through a descriptor: the name may be a link by now, and chmod(2) follows links."""
    if parent is not None:
        allow_owner(parent)
    closed = os.open(name, os.O_PATH | _DIRECTORY, dir_fd=parent)
    try:
        mode = stat.S_IMODE(os.fstat(closed).st_mode)
        Path(f"/proc/self/fd/{closed}").chmod(mode | TO_CHANGE)
    finally:
        os.close(closed)


def remove_tree(folder: Path) -> None:
    """Remove `folder` and its content; links are removed and not followed. Blocks on disk.

    A tree can be deeper than the longest path and than the recursion limit, so each folder in it is first
    moved to the top. Closed folders are opened to their owner. Nothing may write there meanwhile. Raises
    `OSError`.
    """
    # Random, because code chose the existing names.
    start = int.from_bytes(os.urandom(8), "big")
    names = (f".removed-{number:x}" for number in count(start))
    root = open_folder(folder, needed=TO_CHANGE)
    try:
        pending = _emptied(root, root, names)
        while pending:
            name = pending.pop()
            descriptor = open_folder(name, root, TO_CHANGE)
            try:
                pending += _emptied(descriptor, root, names)
            finally:
                os.close(descriptor)
            os.rmdir(name, dir_fd=root)
    finally:
        os.close(root)
    folder.rmdir()


def _emptied(directory: int, root: int, names: Iterator[str]) -> list[str]:
    """Unlink the files of `directory`, move its folders to `root` and return their names there."""
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
            os.close(open_folder(name, directory, TO_CHANGE))  # a closed folder cannot be moved
            os.rename(name, moved[-1], src_dir_fd=directory, dst_dir_fd=root)
    return moved


MAX_LEVELS = 64
_NAMED = 3


@dataclass(frozen=True, slots=True)
class DiskUse:
    """`size_bytes` counts allocated blocks, so holes cost nothing.

    `entries` counts files and folders of any kind. `largest` are the largest files seen, as (path, bytes),
    largest first. `too_deep` names a folder below `MAX_LEVELS` others, which was not measured.
    """

    size_bytes: int
    entries: int
    largest: tuple[tuple[str, int], ...]
    too_deep: str = ""


def measure_disk_use(folder: Path, max_bytes: int, max_entries: int) -> DiskUse:
    """Measure a directory until its end or until a limit is exceeded. Blocks on disk; follows no link.

    Files that vanish meanwhile do not count. A folder that code has closed is opened to its owner again.
    Raises `PermissionError` when code keeps closing it.
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
        yield from _walk_directory(root, "", 0)
    finally:
        os.close(root)


def _walk_directory(directory: int, above: str, level: int) -> Iterator[tuple[str, os.stat_result | None]]:
    """Yield entries, with None for a folder that is too deep; one directory per level is open."""
    with os.scandir(directory) as entries:
        for entry in entries:
            path = f"{above}{entry.name}"
            found = _status(entry.name, directory)
            if found is None:
                continue
            yield path, found
            if stat.S_ISDIR(found.st_mode):
                yield from _walk_folder(directory, path, level + 1)


def _walk_folder(parent: int, path: str, level: int) -> Iterator[tuple[str, os.stat_result | None]]:
    if level > MAX_LEVELS:
        yield path, None
        return
    below = _open(path.rpartition("/")[2], parent)
    if below is None:
        return
    try:
        yield from _walk_directory(below, f"{path}/", level)
    finally:
        os.close(below)


def _open(name: str | Path, parent: int | None = None) -> int | None:
    """Return None for a folder that has vanished, and for another user's closed one."""
    try:
        return open_folder(name, parent)
    except OSError as error:
        if error.errno == errno.EACCES:
            raise
        return None


def _status(name: str, directory: int) -> os.stat_result | None:
    """Return None for a file that has vanished; code may close its folder at any moment."""
    for _ in range(TRIES):
        try:
            return os.stat(name, dir_fd=directory, follow_symlinks=False)
        except PermissionError:
            allow_owner(directory)
        except OSError:
            return None
    raise PermissionError(errno.EACCES, "A folder is closed again and again", name)
