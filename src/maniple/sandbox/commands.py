"""Whether the program of a service is where the sandbox can see it, and what to do when it is not."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

_ALWAYS_SEEN = ("/usr", "/bin", "/sbin")


def missing_command(command: str, path: str, cwd: Path | None, seen: Iterable[Path]) -> str:
    """Return why `command` cannot be started in the sandbox, with what to do; "" when it can.

    `path` is the PATH in there, `seen` is what is shown beside /usr. Blocks on disk.
    """
    if "/" not in command:
        found = shutil.which(command, path=path)
        return "" if found and _is_seen(Path(found), seen) else _not_on_path(command, path)
    if not command.startswith("/") and cwd is None:
        return f"{command} is looked for in cwd, and none is set: write its whole path, or set cwd."
    place = (cwd or Path("/")) / command
    if not place.exists():
        return f"There is no program {place}."
    if not os.access(place, os.X_OK):
        return (
            f"{place} is not executable. Make it so (chmod +x {place}), or start it by its interpreter: "
            "command python3 or node, its path in args, and its folder in reads."
        )
    return ""


def _is_seen(place: Path, seen: Iterable[Path]) -> bool:
    return any(place.is_relative_to(one) for one in (*_ALWAYS_SEEN, *seen))


def _not_on_path(command: str, path: str) -> str:
    words = f"There is no program {command} in the sandbox, whose PATH is {path}"
    if command == "python":
        return f"{words}. Write python3."
    if elsewhere := shutil.which(command):
        return (
            f"{words}. On this machine it is {elsewhere}: write that as command, and name in reads what else "
            "it needs, such as the folder of its interpreter."
        )
    return f"{words}. Install it there, or write its whole path."
