"""Markdown cut into blocks while it is written, so that each can be looked at before it is shown."""

import re

from maniple.reading.markdown import MarkdownScanner

_HTML_QUOTE = re.compile(r"<(/?)(?:blockquote|q)(?=[\s>])", re.IGNORECASE)


class Blocks:
    """Takes text as it comes and gives whole blocks: joined together, they are the text.

    A block ends at a blank line, after a heading and after code, but not within a list item, a quotation
    in HTML, or what another reader may take for code: each can be read alone. Blank lines behind it are its.
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
        """The block that has begun."""
        return "".join((*self._lines, *self._partial))

    @property
    def pending_characters(self) -> int:
        """How long it is, at no expense."""
        return self._characters

    def feed(self, text: str) -> list[str]:
        """Return the blocks that are whole now that `text` has come."""
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
        """Return what is left."""
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
