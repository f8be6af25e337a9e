"""Looking at processes."""

import asyncio
import os
import select
from pathlib import Path


def model_processes(parent: int) -> list[int]:
    """The pids of the embedded model's processes that `parent` has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            ppid = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if ppid == parent and b"llms/embedded/child.py" in command:
            found.append(int(folder.name))
    return found


async def ends(pid: int, within_seconds: float) -> bool:
    """Whether the process ends in time; it need not be a child of ours."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        ready, _, _ = await asyncio.to_thread(select.select, [descriptor], [], [], within_seconds)
    finally:
        os.close(descriptor)
    return bool(ready)
