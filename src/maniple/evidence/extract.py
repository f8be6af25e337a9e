"""Extracts the passages of a page that answer a question, within a number of characters.

Passages are ranked by BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009) within one
page. The libraries for BM25 index whole corpora and need NumPy; here only the question's words are counted.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise
from math import log

from maniple.reading.markdown import MarkdownScanner

PASSAGE_CHARACTERS = 1_200
_HEADING = re.compile(r"(#{1,6})[ \t]")
_TABLE_LINE = re.compile(r"[ \t]*\|.*\|[ \t]*")
_TABLE_RULE = re.compile(r"[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*")
_SENTENCE_ENDS = (". ", "! ", "? ", "。", "！", "？", "；")


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph, a list, a table, a heading, or a part of one that is long."""

    text: str
    before: str = "\n\n"
    """The separator between it and the previous passage."""
    level: int = 0
    """1 to 6 for a heading, else 0."""
    headings: tuple[int, ...] = ()
    """The indices of the headings above it, outermost first."""


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
    """Yield the lines of each block; blocks are separated by blank lines outside of code."""
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
    """Yield the parts of a line with the separator before each; long lines are split at ends of sentences."""
    start, joint = 0, "\n"
    while len(line) - start > PASSAGE_CHARACTERS:
        window = line[start : start + PASSAGE_CHARACTERS]
        ends = [window.rfind(end) + len(end) for end in _SENTENCE_ENDS if end in window]
        length = max((end for end in ends if end > PASSAGE_CHARACTERS // 4), default=0)
        length = length or window.rfind(" ") + 1 or PASSAGE_CHARACTERS
        yield window[:length], joint
        start, joint = start + length, ""
    yield line[start:], joint


GAP = "[…]"
LOOKED_AT_CHARACTERS = 200_000
"""Text beyond this limit is left out without being ranked."""
LEAD_CHARACTERS = 2_000
"""The most that is kept of the beginning, which describes the page and its sections."""
NOTICE_CHARACTERS = 1_500
ASKED_CHARACTERS = 2_000
_SATURATION, _LENGTH = 1.5, 0.75
_NEIGHBOUR = 0.2
"""The share of a passage's score that its neighbours get, because an answer is often next to its keyword."""
_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(rf"[{_CJK}]+|[^\W{_CJK}]+")
_IS_CJK = re.compile(f"[{_CJK}]")


@dataclass(frozen=True, slots=True)
class Extract:
    """The selected part of a text, and the headings of what was left out."""

    text: str
    left_out: Sequence[str] = ()
    is_whole: bool = False
    characters: int = 0
    """The number of selected characters."""
    rows: Sequence[range] = ()
    """The selected table rows, numbered from 1 across all tables, without header rows."""
    all_rows: int = 0
    tables: int = 0


def extract(markdown: str, asked: str, characters: int) -> Extract:
    """Return the passages of a page's Markdown that answer `asked`, in about `characters` characters.

    Passages are in the order of the page, under their headings, with "[…]" for each gap. A short part of the
    beginning is always included, and so is a last line in square brackets, which is a tool's note on its
    result. Remaining room is filled from the beginning of the page, because its language may differ from the
    question's. Without a question, only that is done. A text that fits is returned unchanged.
    """
    if len(markdown) <= characters:
        return Extract(markdown, is_whole=True, characters=len(markdown))
    found = passages(markdown[:LOOKED_AT_CHARACTERS])
    if not found:
        return Extract("")
    chosen = _Selection(found, characters)
    chosen.take_ends()
    scores = _scores(found, set(_terms(asked[:ASKED_CHARACTERS])))
    # Headings are taken with the passages below them, never alone.
    relevant = [place for place, passage in enumerate(found) if scores[place] > 0 and not passage.level]
    for place in sorted(relevant, key=lambda place: (-scores[place], place)):
        chosen.take(place)
    chosen.fill_up()
    return Extract(
        chosen.text(),
        chosen.headings_left_out(),
        characters=chosen.count_characters(),
        rows=chosen.rows(),
        all_rows=chosen.all_rows,
        tables=_count_tables(markdown),
    )


def _count_tables(text: str) -> int:
    return sum(_TABLE_RULE.fullmatch(line) is not None for line in text.splitlines())


def _count_rows(text: str) -> int:
    """Count the rows of pipe tables, without delimiter rows and header rows."""
    lines = sum(_TABLE_LINE.fullmatch(line) is not None for line in text.splitlines())
    return max(lines - 2 * _count_tables(text), 0)


class _Selection:
    """The selected passages, within a number of characters."""

    def __init__(self, found: Sequence[Passage], characters: int) -> None:
        self._found = found
        self._left = characters
        self._taken: dict[int, str] = {}
        self._in_table: list[bool] = []
        for passage in found:
            continues = passage.before == "\n" and any(self._in_table[-1:])
            self._in_table.append(continues or _count_tables(passage.text) > 0)
        counts = [self._count_rows(place, passage.text) for place, passage in enumerate(found)]
        self._first_rows = list(accumulate(counts, initial=1))

    def take_ends(self) -> None:
        """Take a part of the beginning, and a last line in square brackets."""
        lead = min(LEAD_CHARACTERS, self._left // 3)
        for place, passage in enumerate(self._found):
            if len(passage.text) > lead:
                if lead > LEAD_CHARACTERS // 4 or place == 0:
                    self._take(place, self._cut(place, lead))
                break
            self._take(place, passage.text)
            lead -= len(passage.text)
        last = len(self._found) - 1
        text = self._found[last].text
        if text.startswith("[") and text.endswith("]") and len(text) <= min(NOTICE_CHARACTERS, self._left):
            self._take(last, text)

    def fill_up(self) -> None:
        """Take the other passages in order, up to the first that does not fit."""
        for place, passage in enumerate(self._found):
            if not passage.level and not self.take(place):
                return

    def take(self, place: int) -> bool:
        """Take a passage and its headings if they fit; return whether the passage is selected."""
        if self._taken.get(place) == self._found[place].text:
            return True
        left = self._left + self._cost_taken(place)
        wanted = [*(one for one in self._found[place].headings if one not in self._taken), place]
        if sum(self._cost(self._found[one].text) for one in wanted) > left:
            return False
        for one in wanted:
            self._take(one, self._found[one].text)
        return True

    def text(self) -> str:
        places = sorted(self._taken)
        parts = [self._taken[places[0]]]
        for one, two in pairwise(places):
            parts += [self._joint(one, two), self._taken[two]]
        return "".join(parts) + self._joint(places[-1], len(self._found)).rstrip()

    def count_characters(self) -> int:
        """Return how many characters of the text were taken."""
        return sum(len(text.removesuffix(f" {GAP}")) for text in self._taken.values())

    @property
    def all_rows(self) -> int:
        """The number of rows of all tables, taken or not."""
        return self._first_rows[-1] - 1

    def rows(self) -> list[range]:
        """Return the rows that were taken."""
        found: list[range] = []
        for place in sorted(self._taken):
            first, end = self._first_rows[place], self._end_row(place)
            if found and found[-1].stop == first:
                found[-1] = range(found[-1].start, end)
            elif end > first:
                found.append(range(first, end))
        return found

    def _end_row(self, place: int) -> int:
        return self._first_rows[place] + self._count_rows(place, self._taken[place])

    def _count_rows(self, place: int, text: str) -> int:
        return _count_rows(text) if self._in_table[place] else 0

    def _cut(self, place: int, characters: int) -> str:
        """Return the beginning of a passage; only complete rows of a table."""
        beginning = self._found[place].text[:characters]
        whole_rows = beginning.rpartition("\n")[0]
        return whole_rows if self._in_table[place] and whole_rows else f"{beginning.rstrip()} {GAP}"

    def _joint(self, one: int, two: int) -> str:
        """Return the text between two selected passages, or after the last one."""
        left_out = self._first_rows[two] - self._end_row(one)
        continues = two < len(self._found) and self._found[two].before == "\n"
        if left_out and (continues or two == len(self._found)):
            return f"\n[… table rows left out: {left_out:,} …]\n"
        if two == one + 1:
            return self._found[two].before if two < len(self._found) else ""
        return f"\n\n{GAP}\n\n"

    def headings_left_out(self) -> list[str]:
        return [
            passage.text.lstrip("#").strip()
            for place, passage in enumerate(self._found)
            if passage.level and place not in self._taken
        ]

    def _take(self, place: int, text: str) -> None:
        self._left += self._cost_taken(place) - self._cost(text)
        self._taken[place] = text

    def _cost_taken(self, place: int) -> int:
        """Return the cost of a passage that was taken in part, else 0."""
        return self._cost(self._taken[place]) if place in self._taken else 0

    def _cost(self, text: str) -> int:
        return len(text) + len(GAP) + 4


def _scores(found: Sequence[Passage], asked: set[str]) -> list[float]:
    """Return the relevance of each passage for the terms `asked`; 0 means none."""
    lengths: list[int] = []
    counts: list[Counter[str]] = []
    for passage in found:
        terms = [*_terms(passage.text)]
        lengths.append(len(terms))
        under = [term for heading in passage.headings for term in counts[heading]]
        counts.append(Counter([*(term for term in terms if term in asked), *under]))
    average = max(sum(lengths) / len(lengths), 1)
    among = Counter(term for named in counts for term in named)
    rarity = {term: log(1 + (len(found) - n + 0.5) / (n + 0.5)) for term, n in among.items()}

    def score(place: int) -> float:
        norm = _SATURATION * (1 - _LENGTH + _LENGTH * lengths[place] / average)
        return sum(rarity[term] * n * (_SATURATION + 1) / (n + norm) for term, n in counts[place].items())

    own = [score(place) for place in range(len(found))]
    beside = zip([0.0, *own], own, [*own[1:], 0.0], strict=False)
    return [one + _NEIGHBOUR * (left + right) for left, one, right in beside]


def _terms(text: str) -> Iterator[str]:
    """Yield the normalised words of a text; for scripts without spaces, all pairs of adjacent characters."""
    for word in _WORD.findall(text.casefold()):
        if not _IS_CJK.match(word):
            # The plural ending of Western European languages is the most common difference.
            yield word[:-1] if len(word) > 3 and word.endswith("s") else word
        elif len(word) == 1:
            yield word
        else:
            yield from (word[place : place + 2] for place in range(len(word) - 1))
