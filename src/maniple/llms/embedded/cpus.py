"""How many CPUs this process may really use."""

import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_MOST_USEFUL = 8


def usable_cpus(quota_file: Path = _QUOTA) -> int:
    """The number of CPUs, from 1 to 8; affinity and a container's quota (`QUOTA PERIOD` in µs) count.

    More threads than CPUs make the engine many times slower, and beyond 8 memory is what limits it.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min(count, _quota(quota_file), _MOST_USEFUL))


def _quota(quota_file: Path) -> int:
    try:
        quota, period = quota_file.read_text().split()
        return int(quota) // int(period)
    except (OSError, ValueError, ZeroDivisionError):  # no cgroup, or the word `max` for no quota
        return _MOST_USEFUL
