"""Which files a call wrote."""

from collections.abc import Sequence

from maniple.sandbox import Workspace

WRITTEN = "[files written: "
"""How the line begins that names them."""
_WATCHED_FILES = 1_000
_NAMED_FILES = 10

Stamps = set[tuple[str, int, int]]
"""(path, bytes, time of the last change in nanoseconds) of each file."""


def stamps(workspace: Workspace) -> Stamps:
    """Return what distinguishes a file that was written from one that was not. Blocks on disk."""
    return workspace.stamps(_WATCHED_FILES)


def changed(before: Stamps, after: Stamps) -> list[str]:
    """Return the paths of what was written in between; what Python keeps for itself is left out."""
    return sorted(path for path, *_ in after - before if "__pycache__" not in path.split("/"))


def written(paths: Sequence[str]) -> str:
    """Return the line that names `paths`; "" for none. Where they lie is nobody's business but the host's."""
    if not paths:
        return ""
    named = ", ".join(printable(path) for path in paths[:_NAMED_FILES])
    more = f" and {len(paths) - _NAMED_FILES} more" if len(paths) > _NAMED_FILES else ""
    return f"{WRITTEN}{named}{more}]"


def printable(path: str) -> str:
    """Return `path` with unprintable characters escaped, so that it cannot pose as a line."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in path)
