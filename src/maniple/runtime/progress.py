"""The start's progress as lines: of a log, or of whatever takes them."""

import logging
import re
from collections.abc import Callable

_NUMBERS = re.compile(r"\d+")
_LINE_EVERY_PERCENT = 10


class LineProgress:
    """Tells of each new piece of work, and where bytes are counted of every tenth of them.

    A line goes to `say`; without one to the log `maniple.progress` at level INFO.
    """

    def __init__(self, say: Callable[[str], object] | None = None) -> None:
        self._say = say or logging.getLogger("maniple.progress").info
        self._work = ""
        self._tenth = 0

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Tell of `text`, and `done` of `total` bytes, unless that was told already."""
        # "part 3 of 22" and "part 4 of 22" are one piece of work.
        work = _NUMBERS.sub("#", text)
        tenth = 100 * (done or 0) // total // _LINE_EVERY_PERCENT if total else 0
        if work == self._work and tenth <= self._tenth:
            return
        self._work, self._tenth = work, tenth
        self._say(f"{text}{_share(done, total)}")


def _share(done: int | None, total: int | None) -> str:
    if done is None or not total:
        return ""
    return f": {done / 1e6:,.0f} of {total / 1e6:,.0f} MB ({100 * done // total} %)"
