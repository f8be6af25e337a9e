"""Lines that end between words, by the width of the characters on a terminal."""

import re
from typing import TYPE_CHECKING

from rich.cells import cell_len, chop_cells
from rich.containers import Lines
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod, OverflowMethod

_OPEN = "（「『【〔〈《［｛“‘"
_CLOSE = "、。，．：；！？）」』】〕〉》］｝”’…ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ・"
# Chinese and Japanese break between characters; Korean puts spaces between its words.
_IDEOGRAPHS = "\u3041-\u3096\u30a1-\u30fa\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_CHUNK = re.compile(
    rf"\s*(?:[{_OPEN}]*(?![{_CLOSE}])[{_IDEOGRAPHS}][{_CLOSE}]*"
    rf"|[{_OPEN}]*(?:(?![{_OPEN}])(?:[^\s{_IDEOGRAPHS}]|[{_CLOSE}]))+|[{_OPEN}]+)\s*"
)
"""What stays in one line: a word, or an ideograph with the marks that may not begin or end a line."""


def longest_word(text: str) -> int:
    """Return the width of the longest part that is not to be broken, in cells."""
    return max((cell_len(found[0].strip()) for found in _CHUNK.finditer(text)), default=0)


def line_breaks(text: str, width: int, *, fold: bool = True) -> list[int]:
    """Return where a line of text is divided so that no part is wider than `width` cells.

    A word that is wider itself is divided with `fold`; else it goes on from where it begins, and is too wide.
    """
    breaks, used = list[int](), 0
    for found in _CHUNK.finditer(text):
        chunk, needed = found[0], cell_len(found[0].rstrip())
        if used and used + needed > width and (fold or needed <= width):
            breaks.append(found.start())
            used = 0
        if needed > width and fold:
            at = found.start()
            *full, rest = chop_cells(chunk, max(1, width))
            for part in full:
                at += len(part)
                breaks.append(at)
            used = cell_len(rest)
        else:
            used += cell_len(chunk)
    return [at for at in breaks if 0 < at < len(text)]


class WordText(Text):
    """A text whose lines end between words; without `folds_words` a word wider than a line stays whole."""

    folds_words = True

    def wrap(
        self,
        console: "Console",
        width: int,
        *,
        justify: "JustifyMethod | None" = None,
        overflow: "OverflowMethod | None" = None,
        tab_size: int = 8,
        no_wrap: bool | None = None,
    ) -> Lines:
        """Return the lines of the text."""
        if no_wrap or self.no_wrap:
            return super().wrap(
                console, width, justify=justify, overflow=overflow, tab_size=tab_size, no_wrap=True
            )
        justification, lines = justify or self.justify, Lines()
        for line in self.split(allow_blank=True):
            if "\t" in line.plain:
                line.expand_tabs(tab_size)
            parts = line.divide(line_breaks(line.plain, width, fold=self.folds_words))
            for part in parts:
                part.rstrip_end(width)
            if justification in ("center", "right", "full"):
                parts.justify(console, width, justify=justification, overflow="ignore")
            lines.extend(parts)
        return lines


def hang_words(text: Text, width: int) -> Text:
    """Return `text` with line ends between words; each further line begins below the first word of its line.

    A word that is wider than a line stays whole, so that an address or a path can be copied.
    """
    shown = Text()
    for number, line in enumerate(text.split("\n", allow_blank=True)):
        shown.append("\n" if number else "")
        blank = len(line.plain) - len(line.plain.lstrip(" "))
        indent = " " * min(blank, width // 2)
        rest = line[blank:]
        breaks = line_breaks(rest.plain, max(1, width - len(indent)), fold=False)
        for place, part in enumerate(rest.divide(breaks)):
            part.rstrip()
            shown.append(f"\n{indent}" if place else " " * blank).append_text(part)
    return shown
