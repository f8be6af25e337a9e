"""The line that says what is going on and for how long."""

import time

from rich.spinner import Spinner
from rich.text import Text

from maniple.cli.words import duration


class Activity:
    """What the team does at this moment."""

    def __init__(self) -> None:
        self._text = "starting"
        self._since = time.monotonic()
        self._started = self._since
        self._hint = " · Ctrl-C cancels"
        self._spinner = Spinner("dots", style="cyan")

    def begin(self, text: str) -> None:
        """Say what is done now; its time counts from the first time it is said."""
        if text != self._text:
            self._text, self._since = text, time.monotonic()

    def drop_hint(self) -> None:
        """Say no more about keys."""
        self._hint = ""

    def __rich__(self) -> Text:
        now = time.monotonic()
        frame = self._spinner.render(now)
        return Text.assemble(
            frame if isinstance(frame, Text) else "",
            f" {self._text} · {duration(now - self._since)}",
            (f"   run {duration(now - self._started)}{self._hint}", "dim"),
            no_wrap=True,
            overflow="ellipsis",
        )
