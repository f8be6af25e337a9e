"""Whether words stand in a text, however either of them is set."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from maniple.evidence.insertions import adds_nothing, is_backed

LEAST_WORDS = 4
"""What is quoted word for word begins at so many; three Chinese, Japanese or Korean characters are a word."""
LEAST_WORDS_CITED = 3
"""In a block quote, or where its sentence cites a source."""
CHARACTERS_PER_WORD = 3
LEAST_WORDS_BEFORE = 5 / CHARACTERS_PER_WORD
"""Where the citation stands right behind it: two words, or five of those characters."""
GAP_CHARACTERS = 1_500
"""How much of the source an ellipsis may stand for."""
INSERTION_CHARACTERS = 150
"""How much of the source words in brackets may stand for."""
LEAST_WORDS_PER_PART = 2
_MOST_BEGINNINGS = 50

_HAN_KANA_HANGUL = "\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_HAN_KANA_HANGUL}]|[^\W_{_HAN_KANA_HANGUL}]+|[^\w\s]")
# Writing without spaces, and Korean, whose words are short: how many characters make a word.
_UNSPACED = re.compile(
    rf"(?P<ideographs>[{_HAN_KANA_HANGUL}]+)|(?P<thai>[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+)"
)
_PER_WORD = {"ideographs": CHARACTERS_PER_WORD, "thai": 6}
_LINK_TARGET = re.compile(r"\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)?(?: \"[^\"]{0,300}\")?\)")
_SOURCE_WORD = r"(?:(?:sources?|来源|來源|s|#) ?)?"
_REFERENCE = re.compile(
    rf"[\[【] ?{_SOURCE_WORD}\^?\d{{1,3}}(?: ?(?:[,;–&-]|and) ?{_SOURCE_WORD}\d{{1,3}}){{0,20}} ?[\]】]",
    re.IGNORECASE,
)
_ELLIPSIS = re.compile(r"[\[(]? ?(?:…+|\.(?: ?\.){2,}) ?[\])]?")
_INSERTION = re.compile(
    r"[\[(](?:sic|!)[!.]?[\])]"
    rf"|\[(?! ?{_SOURCE_WORD}\d{{1,3}} ?[],;])[^\[\]\n]{{0,80}}[^\W\d][^\[\]\n]{{0,80}}\](?!\()"
    r"|\[\d{1,3}(?:,\d{3})+\]",
    re.IGNORECASE,
)
# Of private use: one character stands for each insertion, in order. Those of a page are its font's icons.
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_MOST_INSERTIONS = 2_000
_BULLET = re.compile(r"^[ \t]{0,20}[-*+•][ \t]", re.MULTILINE)
# What our reader of PDFs sets between pages, and hyphens that a typesetter put into a word.
_PAGE_BREAK = re.compile(r"^## Page \d{1,6}$", re.MULTILINE)
_SOFT_BREAK = re.compile("\u00ad\\s+")
_LETTER = r"[^\W\d_]"
_HYPHEN = re.compile(rf"(?<={_LETTER}) - (?={_LETTER})")
_BROKEN_WORD = re.compile(rf"{_LETTER}[-\u2010\u2011][^\S\n]{{0,8}}\n")
_OWN_CAPITAL = re.compile(rf"(?<!\w)\[({_LETTER})\](?={_LETTER})")
# Soft hyphens, joiners and marks of Markdown that stand within or right beside words.
_WITHIN_WORDS = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff*`\\\\]|~~")
_DASHES = re.compile("[\u2010-\u2015\u2212\ufe58\ufe63\uff0d-]+(?: [\u2010-\u2015\u2212-]+)*")
_NO_WORDING = re.compile("[\"'\u2018-\u201f\u2039\u203a\u00ab\u00bb\u300c-\u300f\u00b4#>|_\\[\\]]")
_EDGES = " .,;:!?。，、；：！？-"


def wording(text: str) -> str:
    """Return the words and signs of `text`, one space between and around them, in one spelling.

    Left out: white space, quotation marks, the marks and link targets of Markdown, numbers of references,
    headings of a PDF's pages. Made alike: letter case, widths and ligatures (NFKC), dashes, a first letter in
    brackets. Takes linear time.
    """
    # White space first: patterns that may run along it from each of its characters are not linear.
    text = " ".join(_SOFT_BREAK.sub("", _PAGE_BREAK.sub("", _BULLET.sub("", text))).split())
    text = _REFERENCE.sub(" ", _LINK_TARGET.sub(" ", _OWN_CAPITAL.sub(r"\1", text)))
    text = unicodedata.normalize("NFKC", _ELLIPSIS.sub(" … ", text).replace("…", "\ue000"))
    text = _DASHES.sub("-", _WITHIN_WORDS.sub("", text))
    tokens = _TOKEN.findall(_NO_WORDING.sub(" ", text).casefold().replace("\ue000", "…"))
    return f" {' '.join(tokens)} "


def searchable(text: str) -> str:
    """Return the `wording` of `text` and, where lines end within words, the same without hyphens behind it.

    Whether a hyphen at the end of a line is a part of the word nobody can see: both are looked through.
    """
    words = wording(_PRIVATE.sub(" ", text))
    joint = "\n" * (GAP_CHARACTERS + 1)  # so wide that no ellipsis leads across
    return f"{words}{joint}{_HYPHEN.sub('', words)}" if _BROKEN_WORD.search(text) else words


def words_in(text: str) -> float:
    """Return how many words `text` has; what is between two spaces is one."""
    unspaced = sum(len(found[0]) / _PER_WORD[found.lastgroup or ""] for found in _UNSPACED.finditer(text))
    spaced = _UNSPACED.sub(" ", text).split()
    return unspaced + sum(1 for word in spaced if any(map(str.isalnum, word)))


@dataclass(frozen=True, slots=True)
class _Gap:
    """What may stand between two parts of a quotation, before the first or behind the last."""

    characters: int = 0
    """Of the source, at most."""
    inserted: tuple[str, ...] = ()
    """What brackets say there, each as a `wording`."""

    def joined(self, other: "_Gap") -> "_Gap":
        return _Gap(max(self.characters, other.characters), self.inserted + other.inserted)

    def admits(self, replaced: str, source: str, *, is_edge: bool = False) -> bool:
        """Whether the brackets may stand for words of the source; at an edge they may stand for none."""
        has_words = is_edge or any(map(str.isalnum, replaced))
        return all(
            adds_nothing(one) or (has_words and is_backed(one, replaced, source)) for one in self.inserted
        )


@dataclass(frozen=True, slots=True)
class Quoted:
    """Words that are said to stand somewhere, in the parts that ellipses and insertions leave."""

    parts: tuple[str, ...]
    gaps: tuple[_Gap, ...]
    """One before each part, and one behind the last."""

    @classmethod
    def of(cls, text: str) -> "Quoted":
        """Read the words between quotation marks, which may end in a mark that is the sentence's."""
        inserted: list[str] = []

        def taken(found: re.Match[str]) -> str:
            if len(inserted) == _MOST_INSERTIONS:
                return found[0]
            inserted.append(wording(found[0][1:-1]))
            return chr(0xE000 + len(inserted))

        text = _INSERTION.sub(taken, _PRIVATE.sub(" ", _OWN_CAPITAL.sub(r"\1", text)))
        parts, gaps = list[str](), [_Gap()]
        for piece in re.split("([…\ue001-\uf8ff])", wording(text)):
            if piece == "…":
                gaps[-1] = gaps[-1].joined(_Gap(GAP_CHARACTERS))
            elif _PRIVATE.fullmatch(piece):
                said = inserted[ord(piece) - 0xE001]
                gaps[-1] = gaps[-1].joined(_Gap(INSERTION_CHARACTERS, (said,)))
            elif words := piece.strip(_EDGES):
                parts.append(f" {words} ")
                gaps.append(_Gap())
        return cls(tuple(parts), tuple(gaps))

    def occurs_in(self, source: str) -> bool:
        """Whether the parts stand in `source` (a `searchable`) whole, in order and near each other.

        Single words with gaps between them stand everywhere, and so nowhere.
        """
        said = sum(token[0].isalnum() for part in self.parts for token in part.split())
        if len(self.parts) > 1 and said < LEAST_WORDS_PER_PART * len(self.parts):
            return False
        unhyphened = tuple(_HYPHEN.sub("", part) for part in self.parts)
        return any(_occur(parts, self.gaps, source) for parts in dict.fromkeys((self.parts, unhyphened)))


def _occur(parts: Sequence[str], gaps: Sequence[_Gap], source: str) -> bool:
    if not parts:
        return True
    start = source.find(parts[0])
    for _ in range(_MOST_BEGINNINGS):
        if start < 0:
            return False
        before = source[max(start - INSERTION_CHARACTERS, 0) : start]
        if gaps[0].admits(before, source, is_edge=True) and _follow(parts, gaps[1:], source, start):
            return True
        start = source.find(parts[0], start + 1)
    return False


def _follow(parts: Sequence[str], gaps: Sequence[_Gap], source: str, start: int) -> bool:
    """Whether the parts behind the first, which begins at `start`, stand where their gaps let them."""
    end = start + len(parts[0]) - 1
    for part, gap in zip(parts[1:], gaps[:-1], strict=True):
        limit = end + gap.characters + len(part)
        found = source.find(part, end, limit)
        while found >= 0 and not gap.admits(source[end:found], source):
            found = source.find(part, found + 1, limit)
        if found < 0:
            return False
        end = found + len(part) - 1
    return gaps[-1].admits(source[end : end + INSERTION_CHARACTERS], source, is_edge=True)
