"""What the tools of servers are called by models: `SERVER__TOOL`, which every endpoint takes."""

import hashlib
import re

LONGEST = 64
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")


class Names:
    """Gives each tool of each server its name, once: it stays the same until it is forgotten.

    What endpoints do not take becomes `_`. A name that is too long, or taken by another tool, ends in a few
    letters that are drawn from both names, and so are the same in every program.
    """

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()

    def of(self, server: str, tool: str) -> str:
        """Return the name of a server's `tool`, at most 64 letters, digits, `_` and `-`."""
        key = (server, tool)
        if key not in self._given:
            name = self._free(key)
            self._taken.add(name)
            self._given[key] = name
        return self._given[key]

    def forget(self, server: str, tool: str) -> None:
        """Let others have the name of a tool that is gone for good."""
        self._taken.discard(self._given.pop((server, tool), ""))

    def _free(self, key: tuple[str, str]) -> str:
        name = "__".join(_FOREIGN.sub("_", part) for part in key)
        if len(name) <= LONGEST and name not in self._taken:
            return name
        drawn = hashlib.sha256("\0".join(key).encode("utf-8", "surrogatepass")).hexdigest()
        # More letters than the first eight are needed only by who looks for names that collide.
        tails = (f"_{drawn[:length]}" for length in range(8, 48))
        return next(one for tail in tails if (one := name[: LONGEST - len(tail)] + tail) not in self._taken)
