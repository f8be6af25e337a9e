"""What of a page answers a question: the passages that speak of it, in few characters.

Ranked by BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009) over the passages of
the one page. The libraries for it index corpora, and bring NumPy: only the question's words are counted here.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log

from maniple.evidence.passages import Passage, passages

GAP = "[…]"
LOOKED_AT_CHARACTERS = 200_000
"""What is beyond is left out unseen."""
LEAD_CHARACTERS = 2_000
"""The beginning stays, in short: it says what the page is, and what sections there are."""
NOTICE_CHARACTERS = 1_500
ASKED_CHARACTERS = 2_000
_SATURATION, _LENGTH = 1.5, 0.75
_NEIGHBOUR = 0.2
"""Of a passage's score, what the ones beside it get: an answer often stands next to the word for it."""
_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(rf"[{_CJK}]+|[^\W{_CJK}]+")
_IS_CJK = re.compile(f"[{_CJK}]")


@dataclass(frozen=True, slots=True)
class Extract:
    """What was chosen of a text, and the headings of what was not."""

    text: str
    left_out: Sequence[str] = ()
    is_whole: bool = False


def extract(markdown: str, asked: str, characters: int) -> Extract:
    """Return what of a page's Markdown answers `asked`, in at most about so many characters.

    In the order of the page, under their headings, with "[…]" where something is left out. The beginning
    stays in short, and so does a last line in square brackets, which is a tool's word on its result.
    Where room is left, the page is read on from its beginning: its language may be another than the
    question's. With nothing asked, that is all. A text that fits comes back as it is.
    """
    if len(markdown) <= characters:
        return Extract(markdown, is_whole=True)
    found = passages(markdown[:LOOKED_AT_CHARACTERS])
    if not found:
        return Extract("")
    chosen = _Chosen(found, characters)
    chosen.take_ends()
    scores = _scores(found, set(_terms(asked[:ASKED_CHARACTERS])))
    # A heading comes with what stands under it, and says nothing alone.
    speaking = [place for place, passage in enumerate(found) if scores[place] > 0 and not passage.level]
    for place in sorted(speaking, key=lambda place: (-scores[place], place)):
        chosen.take(place)
    chosen.read_on()
    return Extract(chosen.text(), chosen.headings_left_out())


class _Chosen:
    """The passages that were taken, within a number of characters."""

    def __init__(self, found: Sequence[Passage], characters: int) -> None:
        self._found = found
        self._left = characters
        self._taken: dict[int, str] = {}

    def take_ends(self) -> None:
        lead = min(LEAD_CHARACTERS, self._left // 3)
        for place, passage in enumerate(self._found):
            if len(passage.text) > lead:
                if lead > LEAD_CHARACTERS // 4 or place == 0:
                    self._take(place, f"{passage.text[:lead].rstrip()} {GAP}")
                break
            self._take(place, passage.text)
            lead -= len(passage.text)
        last = len(self._found) - 1
        text = self._found[last].text
        if text.startswith("[") and text.endswith("]") and len(text) <= min(NOTICE_CHARACTERS, self._left):
            self._take(last, text)

    def read_on(self) -> None:
        """Take the other passages in their order, up to the first that finds no room."""
        for place, passage in enumerate(self._found):
            if not passage.level and not self.take(place):
                return

    def take(self, place: int) -> bool:
        """Take a passage with the headings above it, if they find room; say whether it is there."""
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
            parts += [self._found[two].before if two == one + 1 else f"\n\n{GAP}\n\n", self._taken[two]]
        return "".join(parts) + ("" if len(self._found) - 1 in self._taken else f"\n\n{GAP}")

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
        """Return what the beginning of a passage cost that was taken in short."""
        return self._cost(self._taken[place]) if place in self._taken else 0

    def _cost(self, text: str) -> int:
        return len(text) + len(GAP) + 4


def _scores(found: Sequence[Passage], asked: set[str]) -> list[float]:
    """Return how much each passage speaks of what is asked; 0 is not at all."""
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
    """Yield the words of a text in one form; of writing without spaces, every two characters that meet."""
    for word in _WORD.findall(text.casefold()):
        if not _IS_CJK.match(word):
            # The plural of the languages of Europe's west: the commonest difference of all.
            yield word[:-1] if len(word) > 3 and word.endswith("s") else word
        elif len(word) == 1:
            yield word
        else:
            yield from (word[place : place + 2] for place in range(len(word) - 1))
