"""The walls that bubblewrap builds: what a sandbox sees of this machine, and as whom."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from maniple.sandbox.account import sandbox_account
from maniple.sandbox.programs import Programs, python_prefixes

WORKSPACE = "/workspace"
"""Where a sandbox sees its own folder."""
OWN_FILES = {
    "/etc/hosts": b"127.0.0.1 localhost sandbox\n::1 localhost sandbox\n",
    "/etc/passwd": b"sandbox:x:1000:1000::/tmp:/bin/bash\n",
    "/etc/group": b"sandbox:x:1000:\n",
}
"""What names are looked up in; the host's own would tell of its users and its network."""

_STAGED = "/tmp/shown"
_SYSTEM_DIRECTORIES = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_SYSTEM_FILES = (
    *("/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types"),
)
_UNSHARED = (
    # --unshare-all alone would go on without a user namespace.
    *("--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox"),
    *("--die-with-parent", "--new-session"),
)

Shown = tuple[str, str]
"""A path on the host, and where it is inside."""


@dataclass(frozen=True, slots=True)
class Place:
    """What one sandbox has: its own `folder`, which it may change, and what else it is shown."""

    folder: Path
    variables: Mapping[str, str]
    memory_mb: int
    read_only: tuple[Shown, ...] = ()
    writable: tuple[Shown, ...] = ()
    directories: tuple[str, ...] = ()
    """Made empty, in memory."""


class Isolation:
    """Writes the command lines of sandboxes; blocks on disk when it is made."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self._system_mounts = tuple(_system_mounts())
        self._python = tuple((str(prefix), str(prefix)) for prefix in python_prefixes(Path(programs.python)))

    def argv(self, place: Place) -> list[str]:
        """Return bwrap's command up to where more of its options may follow; it begins in the folder."""
        programs = self._programs
        account = sandbox_account()
        argv = [programs.nice, "-n", "10", programs.choom, "-n", "900", "--"]
        shown = [(one, "--ro-bind") for one in (*self._python, *place.read_only)]
        shown += [(one, "--bind") for one in (*place.writable, (str(place.folder), WORKSPACE))]
        if account is not None:
            # With a process namespace of its own: a root without capabilities, as bwrap's is, may not
            # signal the other user's processes when it dies, but the kernel ends a namespace whole.
            argv += [programs.bwrap, "--die-with-parent", "--unshare-pid", "--as-pid-1"]
            argv += ["--dev-bind", "/", "/", "--tmpfs", "/tmp"]
            for number, ((path, inner), how) in enumerate(shown):
                argv += ["--bind", path, f"{_STAGED}-{number}"]
                shown[number] = ((f"{_STAGED}-{number}", inner), how)
            argv += ["--", *self._init(), programs.setpriv, f"--reuid={account.uid}"]
            argv += [f"--regid={account.gid}", "--clear-groups", "--pdeathsig=keep", "--"]
        argv += [programs.bwrap, *_UNSHARED, *self._system_mounts, *_private_mounts(place.memory_mb)]
        for name, value in place.variables.items():
            argv += ["--setenv", name, value]
        for directory in place.directories:
            argv += ["--dir", directory]
        for (path, inner), how in shown:
            argv += [how, path, inner]
        return [*argv, "--chdir", WORKSPACE]

    def _init(self) -> list[str]:
        """Process 1 of the outer namespace; bwrap's own is left to the host's, which may not reap it."""
        return [self._programs.sh, "-c", '"$@"; exit $?', "init"]


def data_mounts(sources: Mapping[str, int]) -> list[str]:
    """Return what shows the content of open files at their paths, and ends what can be mounted."""
    mounts = [word for path, source in sources.items() for word in ("--ro-bind-data", str(source), path)]
    return [*mounts, "--remount-ro", "/"]


@contextmanager
def memory_file(content: bytes = b"") -> Iterator[FileIO]:
    """An open file without a name, positioned at its start."""
    with FileIO(os.memfd_create("maniple"), "r+b") as file:
        file.write(content)
        file.seek(0)
        yield file


def _private_mounts(memory_mb: int) -> list[str]:
    # These live in memory, outside every process's own limit.
    size = str(memory_mb * 1024 * 1024 // 8)
    shared = ["--dev", "/dev", "--size", size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    # Whoever could write in /proc could write into the worker's memory.
    return ["--proc", "/proc", "--remount-ro", "/proc", *shared, "--size", size, "--tmpfs", "/tmp"]


def _system_mounts() -> Iterator[str]:
    """Read-only: /usr, what stands beside it for older paths, a few harmless files of /etc."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in _SYSTEM_DIRECTORIES:
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    for path in _SYSTEM_FILES:
        yield from ("--ro-bind-try", path, path)
