"""Which files a call wrote."""

import asyncio
from collections.abc import Sequence

from maniple.sandbox import Workspace

WRITTEN = "[files written: "
"""How the line begins that names them."""
# To look at so many takes 40 ms, before a call and after it; at 100, less than one.
_WATCHED_FILES = 10_000
_NAMED_FILES = 10

Stamps = set[tuple[str, int, int]]
"""(path, bytes, time of the last change in nanoseconds) of each file."""


class Writes:
    """What is written in a workspace from when this is entered until it is left.

    Of more files than are watched, which of them are seen is chance; then only those count that were seen
    before and after.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._before: Stamps = set()
        self.paths: list[str] = []
        """Sorted; what Python keeps for itself is left out."""

    async def __aenter__(self) -> None:
        self._before = await self._stamps()

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.paths = changed(self._before, await self._stamps(), _WATCHED_FILES)

    async def _stamps(self) -> Stamps:
        return await asyncio.to_thread(self._workspace.stamps, _WATCHED_FILES)


def changed(before: Stamps, after: Stamps, most: int) -> list[str]:
    """Return the paths of what was written in between, where at most `most` files were looked at."""
    paths = {path for path, *_ in after - before if "__pycache__" not in path.split("/")}
    if max(len(before), len(after)) >= most:
        paths &= {path for path, *_ in before}
    return sorted(paths)


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
