"""Markdown in the terminal, split into blocks while it streams, and the transcript of a run."""

from itertools import dropwhile
from typing import Literal

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

from maniple.cli.render.document_text import SafeMarkdown
from maniple.cli.render.run_text import AGENT_STYLES
from maniple.cli.render.wrapping import WordText
from maniple.events import ANSWERING_AGENTS


class Excerpt:
    """A renderable without blank lines around it; with `last`, only that number of its last lines."""

    def __init__(self, body: RenderableType, last: int | None = None) -> None:
        self._body = body
        self._last = last

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self._body, options.update(height=None), pad=False)
        lines = list(dropwhile(_is_blank, lines))
        while lines and _is_blank(lines[-1]):
            lines.pop()
        for line in lines[-self._last :] if self._last else lines:
            yield from line
            yield Segment.line()


def _is_blank(line: list[Segment]) -> bool:
    return not any(segment.text.strip() for segment in line if not segment.control)


class MarkdownSplitter:
    """Splits streamed Markdown into blocks that later text cannot change, so that they can be printed."""

    def __init__(self) -> None:
        self._parser = MarkdownIt().enable("table")
        self.rest = ""

    def feed(self, text: str) -> str:
        """Add `text`; return the blocks that are complete, or an empty string."""
        self.rest += text
        if "\n" not in text:
            return ""
        lines = self.rest.splitlines(keepends=True)
        # An unfinished line may still become the next item of a list.
        whole = lines if lines[-1].endswith("\n") else lines[:-1]
        tokens = self._parser.parse("".join(whole))
        starts = [token.map[0] for token in tokens if token.level == 0 and token.nesting >= 0 and token.map]
        cut = starts[-1] if len(starts) > 1 else 0
        self.rest = "".join(lines[cut:])
        return "".join(lines[:cut])

    def flush(self) -> str:
        """Return the rest."""
        rest, self.rest = self.rest, ""
        return rest


class LineSplitter:
    """Splits streamed text into lines."""

    def __init__(self) -> None:
        self.rest = ""

    def feed(self, text: str) -> str:
        """Add `text`; return the lines that are complete."""
        whole, _, self.rest = (self.rest + text).rpartition("\n")
        return whole

    def flush(self) -> str:
        """Return the rest."""
        rest, self.rest = self.rest, ""
        return rest


Kind = Literal["content", "reasoning"]
ANSWER_SECTION = "answer"
"""The header of an answer that repeats the result of a member, with its citations checked."""
_INDENT = (0, 0, 0, 2)
_MAX_LIVE_MARKDOWN_LENGTH = 6_000
"""A longer block is shown as plain text until it is complete; in characters."""


class Transcript:
    """Prints sections, one per agent, above the live region.

    The header is printed with the agent's first output: an agent without output has no section.
    """

    def __init__(self, console: Console, *, links: bool = False) -> None:
        self._console = console
        self._links = links
        self._header: tuple[str, str] | None = None
        self._agent = ""
        self._kind: Kind = "content"
        self._stream: MarkdownSplitter | LineSplitter = MarkdownSplitter()
        self._gap = False

    def open_section(self, agent_name: str, title: str) -> None:
        """Start the section of an agent; `title` is that of its step, or empty."""
        self.flush()
        self._agent = agent_name
        self._header = (agent_name, title)

    def write(self, text: str, kind: Kind) -> None:
        """Add streamed text."""
        if kind != self._kind:
            self.flush()
            self._kind, self._stream = kind, MarkdownSplitter() if kind == "content" else LineSplitter()
        if not self._stream.rest and not text.strip():
            return
        self._print_header()
        self._print_block(self._stream.feed(text))

    def flush(self) -> None:
        """Print the text that was still incomplete."""
        self._print_block(self._stream.flush())

    def line(self, line: RenderableType) -> None:
        """Print one line, cut at the screen's edge."""
        self.flush()
        self._print_header()
        self._console.print(Padding(line, _INDENT), no_wrap=True, overflow="ellipsis")
        self._gap = True

    def text(self, text: str | Text) -> None:
        """Print a text with its long lines wrapped."""
        self.flush()
        self._print_header()
        self._console.print(Padding(WordText(text) if isinstance(text, str) else text, _INDENT))
        self._gap = True

    def tail(self, most_lines: int) -> RenderableType | None:
        """Return the last lines of the incomplete text."""
        rest = self._stream.rest
        if not rest.strip():
            return None
        if self._kind == "reasoning":
            return Excerpt(self._styled(rest), most_lines)
        if len(rest) > _MAX_LIVE_MARKDOWN_LENGTH:
            return Excerpt(self._indented(Text(rest[-_MAX_LIVE_MARKDOWN_LENGTH:])), most_lines)
        return Excerpt(self._indented(SafeMarkdown(rest)), most_lines)

    def _print_block(self, text: str) -> None:
        if not text.strip():
            return
        if self._gap and self._kind == "content":
            self._console.print()
        self._gap = True
        self._console.print(Excerpt(self._styled(text)))

    def _styled(self, text: str) -> RenderableType:
        if self._kind == "reasoning":
            return Padding(WordText(text, style="dim italic"), _INDENT)
        return self._indented(SafeMarkdown(text, links=self._links))

    def _indented(self, body: RenderableType) -> RenderableType:
        return body if self._agent in (*ANSWERING_AGENTS, ANSWER_SECTION) else Padding(body, _INDENT)

    def _print_header(self) -> None:
        if self._header is None:
            return
        (agent_name, title), self._header = self._header, None
        self._console.print()
        name = (agent_name.replace("_", " "), f"bold {AGENT_STYLES.get(agent_name, '')}")
        header = Text.assemble(name, (f"  {title}" if title else "", "dim"))
        self._console.print(header, no_wrap=True, overflow="ellipsis")
        self._gap = False
