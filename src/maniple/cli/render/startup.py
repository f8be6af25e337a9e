"""The progress of the start: a bar on a terminal, lines elsewhere."""

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

from maniple.cli.text import clean

_PROGRESS_LINE_SECONDS = 5.0
_ELAPSED = re.compile(r" \(\d+ s\)$")
"""The elapsed time at the end of a progress text; the bar has a clock of its own."""


class StartupBar:
    """Shows the start on one line: a bar for a download, a spinner and the elapsed time for other tasks."""

    def __init__(self, console: Console) -> None:
        # Two sets of columns: only some tasks have a total.
        self._busy = Progress(
            SpinnerColumn(), _description_column(), TimeElapsedColumn(), console=console, transient=True
        )
        self._bytes = Progress(
            SpinnerColumn(),
            _description_column(),
            BarColumn(bar_width=24),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(compact=True),
            console=console,
            transient=True,
        )
        self._shown: tuple[Progress, TaskID, str] | None = None

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Show `text`, and `done` of `total` bytes if they are known."""
        text = _ELAPSED.sub("", clean(text))
        kind = self._busy if total is None else self._bytes
        if self._shown is None or self._shown[0] is not kind or self._shown[2] != _task_of(text):
            self.close()
            kind.start()
            self._shown = (kind, kind.add_task(text, total=total), _task_of(text))
        kind.update(self._shown[1], description=text, completed=done or 0, total=total)

    def close(self) -> None:
        """Erase the line."""
        if self._shown is not None:
            progress, task, _ = self._shown
            self._shown = None
            progress.stop()
            progress.remove_task(task)


def _task_of(text: str) -> str:
    """Return the text without its numbers: "part 3 of 22" and "part 4 of 22" are the same task."""
    return re.sub(r"\d+", "#", text)


def _description_column() -> TextColumn:
    return TextColumn("{task.description}", markup=False)


class StartupLines:
    """Writes a line for each new task of the start, and one every five seconds while it lasts."""

    def __init__(self, notes: IO[str]) -> None:
        self._notes = notes
        self._task = ""
        self._last = 0.0

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Write `text` and the share that is done, unless a line of the same task was just written."""
        task = _task_of(text)
        now = time.monotonic()
        if task == self._task and now - self._last < _PROGRESS_LINE_SECONDS:
            return
        self._task, self._last = task, now
        print(clean(text) + _share(done, total), file=self._notes, flush=True)

    def close(self) -> None:
        """Do nothing: the lines stay."""


def _share(done: int | None, total: int | None) -> str:
    if done is None or not total:
        return " …"
    return f": {done / 1e6:,.0f} of {total / 1e6:,.0f} MB ({100 * done // total} %)"
