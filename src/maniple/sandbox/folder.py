"""Opens folders that sandboxed code may have closed to their owner.

Where the server and the code are one user, a mode is all that the code needs to hide what it has written from
the watchdog, from listings and from removal; where the server is root, to lock its own next session out. No
mode of a folder in a workspace is binding, so the host gives back what it needs itself.
"""

import errno
import os
import stat
from pathlib import Path

TO_READ = stat.S_IRUSR | stat.S_IXUSR
TO_CHANGE = stat.S_IRWXU
TRIES = 20
"""How often the host opens a folder to its owner again while code closes it as often."""
_DIRECTORY = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_folder(name: str | Path, parent: int | None = None, needed: int = TO_READ) -> int:
    """The descriptor of a folder that its owner may use as `needed`, whatever its mode was; follows no link.

    Raises `PermissionError`: with EPERM for a closed folder of somebody else's, with EACCES for one that is
    closed as fast as it is opened. Raises other kinds of `OSError` as `os.open` does.
    """
    is_closed = False
    for _ in range(TRIES):
        try:
            if is_closed:
                _let_in(name, parent)
            return _opened(name, parent, needed)
        except PermissionError as error:
            if error.errno == errno.EPERM:
                raise
            is_closed = True
    raise PermissionError(errno.EACCES, "A folder is closed again and again", str(name))


def allow_owner(folder: int, needed: int = TO_READ) -> None:
    """Give the owner of an open folder all rights in it, if one that is `needed` lacks."""
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


def _let_in(name: str | Path, parent: int | None) -> None:
    """Through a descriptor, because the name may be a link by now, and chmod(2) follows links."""
    if parent is not None:
        allow_owner(parent)
    closed = os.open(name, os.O_PATH | _DIRECTORY, dir_fd=parent)
    try:
        mode = stat.S_IMODE(os.fstat(closed).st_mode)
        Path(f"/proc/self/fd/{closed}").chmod(mode | TO_CHANGE)
    finally:
        os.close(closed)
