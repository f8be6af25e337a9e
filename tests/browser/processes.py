"""The processes that a browser is made of."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path


def children(of: int | None = None) -> set[int]:
    """Processes below that one, by default this one, of any depth."""
    first = of or os.getpid()
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(stat.parent.name)] = int(fields[1])
    below = {first}
    for _ in range(10):
        below |= {process for process, parent in parents.items() if parent in below}
    return below - {first}


def command_of(process: int) -> str:
    """Its command line, empty when it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def chromium_processes() -> list[int]:
    """The main processes of Chromium that were started from here."""
    commands = {process: command_of(process) for process in children()}
    return [
        process
        for process, command in commands.items()
        if "--remote-debugging-pipe" in command
        and not any(other in command for other in ("--type=", "/bin/sh", "bwrap"))
    ]


async def until(condition: Callable[[], bool]) -> None:
    """Processes come and go without telling: looked for again until it is so, for at most 10 s."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("It did not happen within 10 s.")
