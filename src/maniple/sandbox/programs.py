"""Finds the host's programs that the sandbox is made of."""

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from maniple.sandbox.account import sandbox_account
from maniple.types import Unavailable

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
VARIABLES = {
    "PATH": SYSTEM_PATH,
    "LANG": "C.UTF-8",
    "MPLBACKEND": "Agg",
    # Each thread reserves much more than it uses: the C library 64 MB for its own heap.
    "MALLOC_ARENA_MAX": "2",
    "OPENBLAS_NUM_THREADS": "2",
    "OMP_NUM_THREADS": "2",
    # What a program printed before its timeout must have left its buffer.
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONSAFEPATH": "1",
}
"""What code finds in its environment wherever it runs on this machine, beside its places."""
_PACKAGES = {
    "bwrap": "bubblewrap",
    "prlimit": "util-linux",
    "setpriv": "util-linux",
    "choom": "util-linux",
    "nice": "coreutils",
    "sh": "dash",
    "bash": "bash",
}


@dataclass(frozen=True, slots=True)
class Programs:
    """Absolute paths; `python` and `bash` are the ones that sandboxed code gets."""

    bwrap: str
    prlimit: str
    setpriv: str
    choom: str
    nice: str
    sh: str
    bash: str
    python: str

    def python_prefixes(self) -> Iterator[str]:
        """Directories outside /usr that this Python needs: its environment and its base."""
        for python in dict.fromkeys((Path(self.python), Path(self.python).resolve())):
            if not python.is_relative_to("/usr"):
                yield str(python.parent.parent)


def find_programs(python: Path | None, search_path: str | None = None) -> Programs | Unavailable:
    """Look in `search_path` (default: PATH); `python` is the interpreter that the settings name."""
    found: dict[str, str] = {}
    for name, package in _PACKAGES.items():
        path = shutil.which(name, path=search_path)
        if path is None:
            return Unavailable(f"`{name}` is not installed.", f"apt-get install -y {package}")
        found[name] = path
    interpreter = find_python(python)
    if isinstance(interpreter, Unavailable):
        return interpreter
    return Programs(**found, python=str(interpreter))


def find_python(configured: Path | None) -> Path | Unavailable:
    """The configured interpreter, else this process's base one when it is part of the system."""
    if configured is not None:
        if not configured.is_file():
            return Unavailable(f"`sandbox.python` names {configured}, which is no file.", "correct it.")
        if sandbox_account() is not None and not _open_to_all(configured):
            reason = f"`sandbox.python` names {configured}, which only its owner can reach."
            return Unavailable(reason, "install it where every user can run it, or do not be root.")
        return configured.absolute()
    # One under a home directory is no choice: the sandbox's user cannot reach it, and must not.
    base = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
    if base.is_relative_to("/usr") and base.is_file():
        return base
    found = shutil.which("python3", path=SYSTEM_PATH)
    if found is None:
        return Unavailable("There is no system-wide Python for sandboxed code.", "apt-get install -y python3")
    return Path(found)


def _open_to_all(python: Path) -> bool:
    """Whether every directory on the way to it, and to what it links to, can be entered by anyone."""
    directories = (*python.absolute().parents, *python.resolve().parents)
    return all(directory.stat().st_mode & 0o001 for directory in directories)
