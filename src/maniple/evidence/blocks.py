"""Splits Markdown into blocks while it is being written, so that each can be checked before it is shown."""

import re

from maniple.reading.markdown import MarkdownScanner

_HTML_QUOTE = re.compile(r"<(/?)(?:blockquote|q)(?=[\s>])", re.IGNORECASE)


class Blocks:
    """Accepts pieces of a text and returns complete blocks, which joined together are the text.

    A block ends at a blank line, after a heading and after code, but not inside of a list item, an HTML
    quotation, or text that another parser may read as code. Each block can be parsed alone. Blank lines after
    a block belong to it.
    """

    def __init__(self) -> None:
        self._fences = MarkdownScanner(strict=True)
        self._html_quotes = 0
        self._lines: list[str] = []
        self._partial: list[str] = []
        self._ends = False
        self._characters = 0

    @property
    def pending(self) -> str:
        """The text of the incomplete block."""
        return "".join((*self._lines, *self._partial))

    @property
    def pending_characters(self) -> int:
        """The length of `pending`, in constant time."""
        return self._characters

    def feed(self, text: str) -> list[str]:
        """Add `text` and return the blocks that are complete now."""
        ready: list[str] = []
        *whole, rest = text.split("\n")
        for line in whole:
            self._partial.append(f"{line}\n")
            ready += self._take("".join(self._partial))
            self._partial = []
        if rest:
            self._partial.append(rest)
        self._characters += len(text) - sum(map(len, ready))
        return ready

    def end(self) -> list[str]:
        """Return the remaining blocks."""
        line, self._partial = "".join(self._partial), []
        ready = self._take(line) if line else []
        self._characters = 0
        return ready + self._cut()

    def _take(self, line: str) -> list[str]:
        read = self._fences.take(line)
        blank = not line.strip()
        ready = self._cut() if self._ends and not blank and not read.is_nested else []
        self._lines.append(line)
        if not read.is_code:
            for tag in _HTML_QUOTE.finditer(line):
                self._html_quotes = max(self._html_quotes + (-1 if tag[1] else 1), 0)
        may_end = self._fences.can_split and not self._html_quotes
        if may_end and (blank or read.is_code or read.is_heading):
            self._ends = any(one.strip() for one in self._lines)
        return ready + (self._cut() if blank and self._ends and not self._fences.is_nested else [])

    def _cut(self) -> list[str]:
        block = "".join(self._lines)
        self._lines, self._ends = [], False
        return [block] if block else []
