"""Markdown cut into blocks while it is written, so that each can be looked at before it is shown."""

import re

_FENCE = re.compile(r"(?:[ \t]|>|[-*+] |\d{1,3}[.)] ){0,40}(`{3,}|~{3,})([^`\n]*)")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_MARKDOWN = frozenset({"markdown", "md"})


class Fences:
    """Follows lines and knows which of them are code.

    A fence around Markdown, as some models put one around their whole answer, hides nothing: what is inside
    is read as the text that it is.
    """

    def __init__(self) -> None:
        self._open = ""
        self._is_quoted = False
        self._wrapped = False

    @property
    def is_open(self) -> bool:
        """Whether the next line is code."""
        return bool(self._open)

    def takes(self, line: str) -> bool:
        """Follow one more line; say whether it is code or a fence."""
        if self._is_quoted and not line.lstrip().startswith(">"):
            self._open, self._is_quoted = "", False  # code ends with the block quote that it stands in
        found = _FENCE.match(line)
        if found is None:
            return self.is_open
        marks, info = found[1], found[2].strip()
        if self._open:
            if marks.startswith(self._open) and not info:
                self._open, self._is_quoted = "", False
        elif info.casefold() in _MARKDOWN:
            self._wrapped = True
        elif self._wrapped and not info:
            self._wrapped = False
        else:
            self._open, self._is_quoted = marks, line.lstrip().startswith(">")
        return True


class Blocks:
    """Takes text as it comes and gives whole blocks: joined together, they are the text.

    A block ends at a blank line, after a heading and after code; a list or a table without blank lines is
    one. Each keeps the blank lines behind it.
    """

    def __init__(self) -> None:
        self._fences = Fences()
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
        last, self._lines, self._partial, self._characters = self.pending, [], [], 0
        return [last] if last else []

    def _take(self, line: str) -> list[str]:
        blank = not self._fences.is_open and not line.strip()
        ready = self._cut() if self._ends and not blank else []
        is_code = self._fences.takes(line)
        self._lines.append(line)
        # A fence that opens no code ends a block, or it would be read as an opening one.
        if blank or (not self._fences.is_open and (is_code or _HEADING.match(line))):
            self._ends = any(one.strip() for one in self._lines)
        return ready + (self._cut() if blank and self._ends else [])

    def _cut(self) -> list[str]:
        block = "".join(self._lines)
        self._lines, self._ends = [], False
        return [block] if block else []
