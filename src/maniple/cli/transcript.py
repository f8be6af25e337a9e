"""What stays on the screen of a run, and the end of it that still changes."""

from typing import Literal

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from maniple.cli.plan_view import AGENT_STYLES
from maniple.cli.prose import Blocks, Excerpt, Lines, Prose
from maniple.cli.tally import ANSWERING

Kind = Literal["content", "reasoning"]
_INDENT = (0, 0, 0, 2)
_LONGEST_LIVE_MARKDOWN = 6_000
"""Characters; a block longer than this is shown as it came until it is finished."""


class Transcript:
    """Prints sections, one per agent, above the live region.

    A header comes with the first thing that its agent shows, so that silent agents leave no trace.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._header: tuple[str, str] | None = None
        self._agent = ""
        self._kind: Kind = "content"
        self._stream: Blocks | Lines = Blocks()
        self._gap = False

    def open_section(self, agent_name: str, title: str) -> None:
        """Begin the part of an agent; `title` is that of its step, or empty."""
        self.flush()
        self._agent = agent_name
        self._header = (agent_name, title)

    def write(self, text: str, kind: Kind) -> None:
        """Add streamed text."""
        if kind != self._kind:
            self.flush()
            self._kind, self._stream = kind, Blocks() if kind == "content" else Lines()
        if not self._stream.rest and not text.strip():
            return
        self._print_header()
        self._print_block(self._stream.feed(text))

    def flush(self) -> None:
        """Print for good what was still changing."""
        self._print_block(self._stream.flush())

    def line(self, line: RenderableType) -> None:
        """Print one line that is whole, cut at the screen's edge."""
        self.flush()
        self._print_header()
        self._console.print(Padding(line, _INDENT), no_wrap=True, overflow="ellipsis")
        self._gap = True

    def text(self, text: str) -> None:
        """Print a text whole, its long lines wrapped."""
        self.flush()
        self._print_header()
        self._console.print(Padding(Text(text), _INDENT))
        self._gap = True

    def tail(self, most_lines: int) -> RenderableType | None:
        """Return the last lines of what is still changing."""
        rest = self._stream.rest
        if not rest.strip():
            return None
        if self._kind == "reasoning":
            return Excerpt(self._styled(rest), most_lines)
        if len(rest) > _LONGEST_LIVE_MARKDOWN:
            return Excerpt(self._indented(Text(rest[-_LONGEST_LIVE_MARKDOWN:])), most_lines)
        return Excerpt(self._indented(Prose(rest)), most_lines)

    def _print_block(self, text: str) -> None:
        if not text.strip():
            return
        if self._gap and self._kind == "content":
            self._console.print()
        self._gap = True
        self._console.print(Excerpt(self._styled(text)))

    def _styled(self, text: str) -> RenderableType:
        if self._kind == "reasoning":
            return Padding(Text(text, style="dim italic"), _INDENT)
        return self._indented(Prose(text))

    def _indented(self, body: RenderableType) -> RenderableType:
        return body if self._agent in ANSWERING else Padding(body, _INDENT)

    def _print_header(self) -> None:
        if self._header is None:
            return
        (agent_name, title), self._header = self._header, None
        self._console.print()
        name = (agent_name.replace("_", " "), f"bold {AGENT_STYLES.get(agent_name, '')}")
        header = Text.assemble(name, (f"  {title}" if title else "", "dim"))
        self._console.print(header, no_wrap=True, overflow="ellipsis")
        self._gap = False
