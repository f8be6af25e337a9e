"""The part of the screen that is painted again and again, below all that stays."""

import sys
from collections.abc import Callable
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from typing import IO, Any, cast

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook, RenderResult
from rich.control import Control
from rich.file_proxy import FileProxy
from rich.segment import ControlType, Segment, Segments

# rich has no name for "erase from here to the end of the screen".
_ERASE = Segments([Segment("\r\x1b[J", None, [(ControlType.CARRIAGE_RETURN,)])])


class LiveRegion(RenderHook):
    """Paints `content()` below everything that is printed, and takes it away in the end.

    Unlike rich's `Live` it leaves the cursor at its first cell. A terminal that wraps its lines anew when
    its width changes takes the cursor along; so the region is all that is below the cursor, in however many
    rows it is by then, and none of them stays behind.
    """

    def __init__(self, console: Console, content: Callable[[], RenderableType]) -> None:
        self._console = console
        self._content = content
        self._redirected = ExitStack()

    def start(self) -> None:
        """Paint it, and print above it whatever is written to this terminal."""
        self._console.show_cursor(False)
        self._console.push_render_hook(self)
        if _is_terminal(sys.stdout):
            self._redirected.enter_context(redirect_stdout(self._proxy(sys.stdout)))
        if _is_terminal(sys.stderr):
            self._redirected.enter_context(redirect_stderr(self._proxy(sys.stderr)))
        self.refresh()

    def refresh(self) -> None:
        """Paint it anew, at the size that the terminal has now."""
        self._console.print(Control())

    def stop(self) -> None:
        """Take it from the screen."""
        self._redirected.close()
        self._console.pop_render_hook()
        self._console.print(_ERASE, end="")
        self._console.show_cursor(True)

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Put what is printed above the region."""
        return [_ERASE, *renderables, self]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # The options are those of the text that is printed above; it may be one that is not to be wrapped.
        lines = console.render_lines(self._content(), console.options, pad=False)[-console.height :]
        for number, line in enumerate(lines):
            if number:
                yield Segment.line()
            yield from line
        yield Control(*([(ControlType.CURSOR_UP, len(lines) - 1)] if len(lines) > 1 else []))
        yield Control(ControlType.CARRIAGE_RETURN)

    def _proxy(self, stream: IO[str]) -> Any:
        return cast("Any", FileProxy(self._console, stream))


def _is_terminal(stream: IO[str] | None) -> bool:
    return stream is not None and stream.isatty()
