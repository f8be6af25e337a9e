"""The host's programs, Python and memory that sandboxes use."""

import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from maniple.errors import Unavailable

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
VARIABLES = {
    "PATH": SYSTEM_PATH,
    "LANG": "C.UTF-8",
    "MPLBACKEND": "Agg",
    # Threads reserve much more than they use: the C library 64 MB for the heap of each.
    "MALLOC_ARENA_MAX": "2",
    "OPENBLAS_NUM_THREADS": "2",
    "OMP_NUM_THREADS": "2",
    # Output before a timeout must not stay in a buffer.
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONSAFEPATH": "1",
}
"""The environment variables of code on this machine, without those that hold paths."""
_PACKAGES = {
    "bwrap": "bubblewrap",
    "prlimit": "util-linux",
    "setpriv": "util-linux",
    "choom": "util-linux",
    "nsenter": "util-linux",
    "nice": "coreutils",
    "sh": "dash",
    "bash": "bash",
}


@dataclass(frozen=True, slots=True)
class HostPrograms:
    """Absolute paths; sandboxed code uses `python` and `bash`."""

    bwrap: str
    prlimit: str
    setpriv: str
    choom: str
    nsenter: str
    nice: str
    sh: str
    bash: str
    python: str


_CGROUPS = Path("/sys/fs/cgroup")
_MEMORY_FIELD = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MachineMemory:
    """The memory of this machine, or of the container that this process is in."""

    total_bytes: int
    available_bytes: int
    """The memory that programs can use before others must release theirs."""


def read_machine_memory() -> MachineMemory:
    """Return the memory as it is now; blocks for 0.1 ms."""
    fields = {
        name: 1024 * int(size) for name, size in _MEMORY_FIELD.findall(Path("/proc/meminfo").read_text())
    }
    total, available = fields["MemTotal"], fields["MemAvailable"]
    for limit, used in _container_memory():
        total, available = min(total, limit), min(available, limit - used)
    return MachineMemory(total, max(available, 0))


def _container_memory() -> Iterator[tuple[int, int]]:
    """Yield limit and use of memory, in bytes, of the control groups that this process belongs to."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            folder, limit, used, cache = _CGROUPS, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            folder, limit = _CGROUPS / "memory", "memory.limit_in_bytes"
            used, cache = "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        # In a container the path is that of the host, and the group is mounted at the root.
        for place in (folder / path.strip("/"), folder):
            with suppress(OSError, ValueError, KeyError):
                stat = dict(each.split(" ", 1) for each in (place / "memory.stat").read_text().splitlines())
                in_use = int((place / used).read_text()) - int(stat[cache])
                yield int((place / limit).read_text()), in_use


def find_python_prefixes(python: Path) -> Iterator[Path]:
    """Yield the directories outside /usr that this interpreter needs: its environment and its base."""
    for path in dict.fromkeys((python, python.resolve())):
        prefix = path.parent.parent
        # /bin is a link to /usr/bin, or shown itself; the directory above it is the whole machine.
        if not prefix.is_relative_to("/usr") and prefix != Path("/"):
            yield prefix


def find_programs(python: Path | None, search_path: str | None = None) -> HostPrograms:
    """Search `search_path` (default: PATH); `python` is the interpreter of the settings, if any.

    Raises `Unavailable` with the first one that is not there.
    """
    found: dict[str, str] = {}
    for name, package in _PACKAGES.items():
        path = shutil.which(name, path=search_path)
        if path is None:
            raise Unavailable(f"`{name}` is not installed.", f"apt-get install -y {package}")
        found[name] = path
    return HostPrograms(**found, python=str(find_python(python)))


def find_python(configured: Path | None) -> Path:
    """Return the configured interpreter, else this process's base one or `python3`, if in the system.

    Raises `Unavailable` where there is none.
    """
    if configured is not None:
        if not configured.is_file():
            raise Unavailable(f"`sandbox.python` names {configured}, which is not a file.", "correct it.")
        return configured.absolute()
    # One under a home directory is shown to sandboxed code only if the settings name it.
    base = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
    if base.is_relative_to("/usr") and base.is_file():
        return base
    found = shutil.which("python3", path=SYSTEM_PATH)
    if found is None:
        raise Unavailable("There is no system-wide Python for sandboxed code.", "apt-get install -y python3")
    return Path(found)


def standalone_program(name: str) -> Traversable:
    """Return a program of the folder `standalone`; these run on their own and import nothing of maniple."""
    return resources.files("maniple.sandbox").joinpath("standalone", name)
