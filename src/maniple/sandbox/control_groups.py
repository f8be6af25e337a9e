"""Control groups of sandboxes (cgroup v2), on machines that delegate some to this process.

Inside of one, the kernel counts what the watchdog can only estimate: buffers of sockets and pipes, and page
tables. They are an addition: without them the watchdog, the system-call filter and the limits of
`socket_memory` hold alone, because most machines delegate nothing.

A group is used only if the manager of the machine's groups has delegated it: the attribute `user.delegate`
or `trusted.delegate`, which systemd sets for `Delegate=yes` (https://systemd.io/CGROUP_DELEGATION/), on the
group of this process, or on the one above it (`DelegateSubgroup=`). No process may be in a group that limits
others, so what is in it moves into a group of its own (https://docs.kernel.org/admin-guide/cgroup-v2.html).
"""

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path

CONTROLLERS = ("memory", "pids")
_PREFIX = "maniple-"
_SERVER = f"{_PREFIX}server"
_DELEGATED = ("user.delegate", "trusted.delegate")
# The watchdog stops code at its limit with a reason; the kernel stops what it cannot see, without one.
_MEMORY_TIMES = 2
# Processes of bubblewrap and the keeper, beside those of the code.
_MORE_PROCESSES = 32
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """The group of one sandbox."""

    path: Path

    def enter(self, shell: str) -> list[str]:
        """Return the words before a command that let it start in this group, and not at all if it cannot."""
        return [shell, "-c", 'echo 0 > "$0" && exec "$@"', str(self.path / "cgroup.procs")]

    def remove(self) -> bool:
        """End its processes, and remove it once they are gone; return whether it is. May be repeated."""
        with suppress(OSError):
            (self.path / "cgroup.kill").write_text("1")
        try:
            self.path.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True


@dataclass(slots=True)
class ControlGroups:
    """Makes the groups of sandboxes in `folder`. Every method blocks on the kernel for some microseconds."""

    folder: Path
    _numbers: "count[int]" = field(default_factory=count)
    _ended: list[ControlGroup] = field(default_factory=list[ControlGroup])

    def make(self, limits: Mapping[str, str]) -> ControlGroup | None:
        """Return a new group with these values by the names of their files; None where that fails."""
        self._ended = [one for one in self._ended if not one.remove()]
        group = ControlGroup(self.folder / f"{_PREFIX}{os.getpid()}-{next(self._numbers)}")
        try:
            group.path.mkdir()
            for name, value in limits.items():
                (group.path / name).write_text(value)
        except OSError as error:
            _LOG.warning("A sandbox has no control group: %s", error)
            group.remove()
            return None
        return group

    def end(self, group: ControlGroup) -> None:
        """End the processes of a group, and remove it now or later."""
        if not group.remove():
            self._ended.append(group)


def sandbox_limits(memory_mb: int, processes: int) -> dict[str, str]:
    """Return the limits of a sandbox, for `ControlGroups.make`."""
    return {
        "memory.max": str(_MEMORY_TIMES * memory_mb * 1024 * 1024),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": str(processes + _MORE_PROCESSES),
    }


@cache
def find_control_groups() -> ControlGroups | None:
    """Return the groups of this process's sandboxes; None where none was delegated to it. Blocks on disk."""
    own = _find_own_group(Path("/proc/self/cgroup"), Path("/proc/self/mounts"))
    return open_control_groups(own) if own is not None else None


def open_control_groups(own: Path, controllers: Sequence[str] = CONTROLLERS) -> ControlGroups | None:
    """Return the groups beside or below `own`, the group of this process; None if none was delegated."""
    for folder in (own, own.parent):
        if not _is_delegated(folder):
            continue
        try:
            _enable(folder, controllers)
        except OSError as error:
            _LOG.warning("The control group %s cannot be used: %s", folder, error)
            continue
        _LOG.info("Sandboxes have control groups in %s.", folder)
        return ControlGroups(folder)
    return None


def _find_own_group(membership: Path, mounts: Path) -> Path | None:
    """Return the folder of this process's group; None where version 2 is not mounted."""
    paths = [line.partition("::")[2] for line in _lines(membership) if line.startswith("0::")]
    fields = [line.split() for line in _lines(mounts)]
    places = [words[1] for words in fields if len(words) > 2 and words[2] == "cgroup2"]
    if not paths or not places:
        return None
    return Path(places[0]) / paths[0].lstrip("/")


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []


def _is_delegated(folder: Path) -> bool:
    for name in _DELEGATED:
        with suppress(OSError):
            if os.getxattr(folder, name) == b"1":
                return True
    return False


def _enable(folder: Path, controllers: Sequence[str]) -> None:
    """Let `folder` limit what is in its groups; raises `OSError` where the kernel does not allow that."""
    there = (folder / "cgroup.controllers").read_text().split()
    if missing := set(controllers) - set(there):
        raise OSError(f"it lacks {', '.join(sorted(missing))}")
    enabled = (folder / "cgroup.subtree_control").read_text().split()
    if set(controllers) <= set(enabled):
        return
    processes = (folder / "cgroup.procs").read_text().split()
    if processes:
        server = folder / _SERVER
        server.mkdir(exist_ok=True)
        for process in processes:
            with suppress(ProcessLookupError):
                (server / "cgroup.procs").write_text(process)
    (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))
