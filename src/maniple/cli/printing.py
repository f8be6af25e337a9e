"""What running calls print: the last lines of it, until their results are there."""

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from maniple.cli.untrusted import clean
from maniple.events import ToolPrinted

_KEPT_CHARACTERS = 4_000
_MOST_LINES = 5
_INDENT = (0, 0, 0, 6)


class Printing:
    """Keeps the newest output of each call under way; a call's standard output and errors are one text."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def add(self, event: ToolPrinted) -> None:
        """Take a piece, as untrusted as it comes."""
        # The call that printed last is the last of them.
        text = self._texts.pop(event.tool_call_id, "") + event.text
        self._texts[event.tool_call_id] = text[-_KEPT_CHARACTERS:]

    def end(self, tool_call_id: str) -> None:
        """Forget a call that has its result."""
        self._texts.pop(tool_call_id, None)

    def tail(self, most_lines: int) -> RenderableType | None:
        """Return the last lines of the call that printed last, each cut at the screen's edge."""
        if not self._texts:
            return None
        # A progress bar writes over its line again and again; here each state of it is a line.
        text = clean(self._texts[next(reversed(self._texts))].replace("\r", "\n"))
        lines = [line for line in text.splitlines() if line.strip()]
        if not lines:
            return None
        shown = "\n".join(lines[-min(most_lines, _MOST_LINES) :])
        return Padding(Text(shown, style="dim", no_wrap=True, overflow="ellipsis"), _INDENT)
