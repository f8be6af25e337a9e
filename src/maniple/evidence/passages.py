"""A page's Markdown in pieces that make sense by themselves."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

from maniple.reading.markdown import MarkdownScanner

PASSAGE_CHARACTERS = 1_200
_HEADING = re.compile(r"(#{1,6})[ \t]")
_SENTENCE_ENDS = (". ", "! ", "? ", "。", "！", "？", "；")


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph, a list, a table, a heading, or a part of one that is long."""

    text: str
    before: str = "\n\n"
    """What stands between it and the passage before it."""
    level: int = 0
    """1 to 6 of a heading."""
    headings: tuple[int, ...] = ()
    """The passages that are the headings above it, outermost first."""


def passages(markdown: str) -> list[Passage]:
    """Return the passages of a text in order, each of at most `PASSAGE_CHARACTERS`; takes linear time."""
    found: list[Passage] = []
    above: list[int] = []
    for passage in (piece for block in _blocks(markdown) for piece in _pieces(block)):
        if passage.level:
            above = [place for place in above if found[place].level < passage.level]
        found.append(replace(passage, headings=tuple(above)))
        if passage.level:
            above.append(len(found) - 1)
    return found


def _blocks(markdown: str) -> Iterator[list[str]]:
    """Yield the lines of each block; blank lines part them but for those in code."""
    block: list[str] = []
    fences = MarkdownScanner()
    for line in markdown.splitlines():
        is_code = fences.take(line).is_code
        alone = not is_code and _HEADING.match(line)
        if not is_code and (alone or not line.strip()) and block:
            yield block
            block = []
        if alone:
            yield [line]
        elif line.strip() or is_code:
            block.append(line)
    if block:
        yield block


def _pieces(lines: list[str]) -> Iterator[Passage]:
    heading = _HEADING.match(lines[0])
    level = len(heading[1]) if heading else 0
    piece: list[str] = []
    length, before = 0, "\n\n"
    for part, joint in chain.from_iterable(map(_parts, lines)):
        if piece and (length + len(part) > PASSAGE_CHARACTERS or joint == ""):
            yield Passage("\n".join(piece), before, level)
            piece, length, before = [], 0, joint
        piece.append(part)
        length += len(part) + 1
    yield Passage("\n".join(piece), before, level)


def _parts(line: str) -> Iterator[tuple[str, str]]:
    """Yield a line, or what it is cut into at the ends of sentences, and what stands before each part."""
    start, joint = 0, "\n"
    while len(line) - start > PASSAGE_CHARACTERS:
        window = line[start : start + PASSAGE_CHARACTERS]
        ends = [window.rfind(end) + len(end) for end in _SENTENCE_ENDS if end in window]
        length = max((end for end in ends if end > PASSAGE_CHARACTERS // 4), default=0)
        length = length or window.rfind(" ") + 1 or PASSAGE_CHARACTERS
        yield window[:length], joint
        start, joint = start + length, ""
    yield line[start:], joint
