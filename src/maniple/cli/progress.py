"""How far the start is: a bar on a terminal, now and then a line elsewhere."""

import re
import time
from typing import IO

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from maniple.cli.untrusted import clean

_LINE_EVERY_SECONDS = 5.0
_SECONDS = re.compile(r" \(\d+ s\)$")
"""The bar has a clock of its own."""


class ProgressBar:
    """Shows one line: a spinner and the time for work without a measure, a bar for bytes."""

    def __init__(self, console: Console) -> None:
        # Two lines of columns, since a task has either a measure or none.
        self._busy = Progress(
            SpinnerColumn(), _description(), TimeElapsedColumn(), console=console, transient=True
        )
        self._bytes = Progress(
            SpinnerColumn(),
            _description(),
            BarColumn(bar_width=24),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(compact=True),
            console=console,
            transient=True,
        )
        self._shown: tuple[Progress, TaskID, str] | None = None

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Show `text`, and `done` of `total` bytes where that is known."""
        text = _SECONDS.sub("", clean(text))
        kind = self._busy if total is None else self._bytes
        if self._shown is None or self._shown[0] is not kind or self._shown[2] != _work(text):
            self.close()
            kind.start()
            self._shown = (kind, kind.add_task(text, total=total), _work(text))
        kind.update(self._shown[1], description=text, completed=done or 0, total=total)

    def close(self) -> None:
        """Take the line from the screen."""
        if self._shown is not None:
            progress, task, _ = self._shown
            self._shown = None
            progress.stop()
            progress.remove_task(task)


def _work(text: str) -> str:
    """Return what is the same in "part 3 of 22" and "part 4 of 22", which are one piece of work."""
    return re.sub(r"\d+", "#", text)


def _description() -> TextColumn:
    return TextColumn("{task.description}", markup=False)


class ProgressLines:
    """Writes a line for each new piece of work, and one every five seconds while it lasts."""

    def __init__(self, notes: IO[str]) -> None:
        self._notes = notes
        self._work = ""
        self._last = 0.0

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Write `text` with the share that is done, unless that was said just now."""
        work = _work(text)
        now = time.monotonic()
        if work == self._work and now - self._last < _LINE_EVERY_SECONDS:
            return
        self._work, self._last = work, now
        print(clean(text) + _share(done, total), file=self._notes, flush=True)

    def close(self) -> None:
        """Leave the lines as they are."""


def _share(done: int | None, total: int | None) -> str:
    if done is None or not total:
        return " …"
    return f": {done / 1e6:,.0f} of {total / 1e6:,.0f} MB ({100 * done // total} %)"
