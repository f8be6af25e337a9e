"""Markdown for the terminal, and its cutting into blocks while it streams."""

import re
from collections.abc import Iterable
from itertools import dropwhile
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult
from rich.markdown import Heading, Markdown
from rich.segment import Segment

_DEFINITION = re.compile(r"^( {0,3})\[(?=[^\]\n]+\]:)(.*)$", re.MULTILINE)


class _LeftHeading(Heading):
    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}


class Prose(Markdown):
    """Markdown with its addresses in sight, since what a link is called is the model's word only."""

    elements: ClassVar = {**Markdown.elements, "heading_open": _LeftHeading}

    def __init__(self, text: str) -> None:
        super().__init__(_with_definitions(text), code_theme="ansi_dark", hyperlinks=False)
        for token in self.parsed:
            if token.children:
                token.children = list(_without_repeated_addresses(token.children))


def _with_definitions(text: str) -> str:
    """Keep `[1]: https://…` as text: the block that refers to it may long be printed."""
    references: dict[str, object] = {}
    MarkdownIt().parse(text, references)
    return _DEFINITION.sub(r"\1\\[\2  ", text) if references.get("references") else text


def _without_repeated_addresses(tokens: list[Token]) -> Iterable[Token]:
    """Drop the link around a text that is the address itself."""
    bare = False
    for position, token in enumerate(tokens):
        if token.type == "link_open":
            bare = tokens[position + 1].content.strip() == token.attrs.get("href")
        if not (bare and token.type in ("link_open", "link_close")):
            yield token


class Excerpt:
    """A renderable without blank lines around it and, where `last` is given, only its last lines."""

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


class Blocks:
    """Cuts streamed Markdown where a block has ended for good, so that it can be printed for good."""

    def __init__(self) -> None:
        self._parser = MarkdownIt().enable("table")
        self.rest = ""

    def feed(self, text: str) -> str:
        """Add `text`; return the blocks that nothing can change any more, or an empty string."""
        self.rest += text
        if "\n" not in text:
            return ""
        lines = self.rest.splitlines(keepends=True)
        # An unfinished line may still turn from a paragraph into the next item of a list.
        whole = lines if lines[-1].endswith("\n") else lines[:-1]
        tokens = self._parser.parse("".join(whole))
        starts = [token.map[0] for token in tokens if token.level == 0 and token.nesting >= 0 and token.map]
        cut = starts[-1] if len(starts) > 1 else 0
        self.rest = "".join(lines[cut:])
        return "".join(lines[:cut])

    def flush(self) -> str:
        """Return what is left."""
        rest, self.rest = self.rest, ""
        return rest


class Lines:
    """Cuts streamed text at its line ends."""

    def __init__(self) -> None:
        self.rest = ""

    def feed(self, text: str) -> str:
        """Add `text`; return the lines that are whole."""
        whole, _, self.rest = (self.rest + text).rpartition("\n")
        return whole

    def flush(self) -> str:
        """Return what is left."""
        rest, self.rest = self.rest, ""
        return rest
