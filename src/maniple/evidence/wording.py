"""Whether words stand in a text, however either of them is set."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

LEAST_WORDS = 4
"""What is quoted word for word begins at so many; three Chinese, Japanese or Korean characters are a word."""
CHARACTERS_PER_WORD = 3
GAP_CHARACTERS = 1_500
"""How much of the source an ellipsis may stand for."""
_MOST_BEGINNINGS = 50

_HAN_KANA_HANGUL = "\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_HAN_KANA_HANGUL}]|[^\W_{_HAN_KANA_HANGUL}]+|[^\w\s]")
_IDEOGRAPH = re.compile(rf"[{_HAN_KANA_HANGUL}]")
_LINK_TARGET = re.compile(r"\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)?(?: \"[^\"]{0,300}\")?\)")
_REFERENCE = re.compile(r"[\[【]\^?\d{1,3}(?: ?[,;–-] ?\d{1,3}){0,20}[\]】]")
_ELLIPSIS = re.compile(r"[\[(]? ?(?:…+|\.(?: ?\.){2,}) ?[\])]?")
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
    text = " ".join(_SOFT_BREAK.sub("", _PAGE_BREAK.sub("", text)).split())
    text = _REFERENCE.sub(" ", _LINK_TARGET.sub(" ", _OWN_CAPITAL.sub(r"\1", text)))
    text = unicodedata.normalize("NFKC", _ELLIPSIS.sub(" … ", text).replace("…", "\ue000"))
    text = _DASHES.sub("-", _WITHIN_WORDS.sub("", text))
    tokens = _TOKEN.findall(_NO_WORDING.sub(" ", text).casefold().replace("\ue000", "…"))
    return f" {' '.join(tokens)} "


def searchable(text: str) -> str:
    """Return the `wording` of `text` and, where lines end within words, the same without hyphens behind it.

    Whether a hyphen at the end of a line is a part of the word nobody can see: both are looked through.
    """
    words = wording(text)
    joint = "\n" * (GAP_CHARACTERS + 1)  # so wide that no ellipsis leads across
    return f"{words}{joint}{_HYPHEN.sub('', words)}" if _BROKEN_WORD.search(text) else words


def words_in(text: str) -> float:
    """Return how many words `text` has."""
    tokens = _TOKEN.findall(text)
    ideographs = sum(1 for token in tokens if _IDEOGRAPH.fullmatch(token))
    others = sum(1 for token in tokens if token[0].isalnum()) - ideographs
    return others + ideographs / CHARACTERS_PER_WORD


@dataclass(frozen=True, slots=True)
class Quoted:
    """Words that are said to stand somewhere, in the parts that ellipses leave."""

    parts: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "Quoted":
        """Read the words between quotation marks, which may end in a mark that is the sentence's."""
        parts = (part.strip(_EDGES) for part in wording(text).split("…"))
        return cls(tuple(f" {part} " for part in parts if part))

    def occurs_in(self, source: str) -> bool:
        """Whether the parts stand in `source` (a `searchable`) whole, in order and near each other."""
        unhyphened = tuple(_HYPHEN.sub("", part) for part in self.parts)
        return any(_occur(parts, source) for parts in dict.fromkeys((self.parts, unhyphened)))


def _occur(parts: Sequence[str], source: str) -> bool:
    if not parts:
        return True
    first, *rest = parts
    start = source.find(first)
    for _ in range(_MOST_BEGINNINGS):
        if start < 0:
            return False
        if _follow(rest, source, start + len(first) - 1):
            return True
        start = source.find(first, start + 1)
    return False


def _follow(parts: Sequence[str], source: str, start: int) -> bool:
    for part in parts:
        found = source.find(part, start, start + GAP_CHARACTERS + len(part))
        if found < 0:
            return False
        start = found + len(part) - 1
    return True
