"""Checks whether a quotation occurs in a text, ignoring typography and formatting."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from maniple.evidence.negation import has_negation
from maniple.evidence.speech import SAYS

_NOTES = (
    "sic emphasis added mine ours original italics hervorhebung hinzugefügt "
    "a an the this that these those who which i you he she it we they me him her us them my your his its our "
    "their of to and is are was were has have had "
    "der die das den dem des ein eine einen einem einer er sie es wir ich ihr ihm ihn ihnen "
    "le la les l un une des il elle ils elles on ce cette ces lui leur "
    "el los las una él ella ellos ellas lo gli uno egli loro o os as ele ela eles"
)
_FREE = frozenset((*_NOTES.split(), *"原文如此着重号为笔者所加ママ"))
_FIGURE = re.compile(r"\d+(?: [.,] \d+)*")


def is_filler(inserted: str) -> bool:
    """Whether words in brackets (a `wording`) add no claim, such as an editor's note or a pronoun."""
    return all(word in _FREE for word in inserted.split() if word[0].isalnum())


def is_supported(inserted: str, replaced: str, source: str) -> bool:
    """Whether words in brackets may replace `replaced`, a part of `source`; all are `wording`s.

    A negation may only replace a negation. A number must occur in the source; if numbers are replaced, at
    least one of them must remain.
    """
    if has_negation(inserted) and not has_negation(replaced):
        return False
    figures, before = _FIGURE.findall(inserted), _FIGURE.findall(replaced)
    if figures and before and not set(figures) & set(before):
        return False
    return all(f" {figure} " in source for figure in figures)


LEAST_WORDS = 4
"""The length from which a text in quotation marks is checked. Three CJK characters count as a word."""
LEAST_WORDS_CITED = 3
"""The same for a block quote, or if its sentence cites a source."""
CHARACTERS_PER_WORD = 3
LEAST_WORDS_BEFORE = 5 / CHARACTERS_PER_WORD
"""The same if a citation directly follows: two words, or five CJK characters."""
GAP_CHARACTERS = 1_500
"""How many characters of the source an ellipsis may replace."""
INSERTION_CHARACTERS = 150
"""How many characters of the source words in brackets may replace."""
LEAST_WORDS_PER_PART = 2
SPEAKER_CHARACTERS = 90
"""The length of who says something between the words of a source, with the verb."""
_MAX_PAUSES = 20
_MAX_BEGINNINGS = 50

_HAN_KANA_HANGUL = "\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_HAN_KANA_HANGUL}]|[^\W_{_HAN_KANA_HANGUL}]+|[^\w\s]")
# Scripts without spaces, and Korean, whose words are short; `_PER_WORD` has the characters that make a word.
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
# Private-use characters stand for the insertions, in order. In a page they are icons of its font.
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_MAX_INSERTIONS = 2_000
_PAUSE = re.compile(r" ([-,.;:!?。，、；：！？]) ")
# "Glass, she used to say, forgets": who speaks may stand within the words of a source, and is not quoted.
_SPEAKER = re.compile(r"[-,!?，、！？] ([^,;:!?，、；：！？]{2,80}) [-,.;:!?。，、；：！？]")
_BULLET = re.compile(r"^[ \t]{0,20}[-*+•][ \t]", re.MULTILINE)
# The headings that our PDF reader inserts between pages, and soft hyphens at line breaks.
_PAGE_BREAK = re.compile(r"^## Page \d{1,6}$", re.MULTILINE)
_SOFT_BREAK = re.compile("\u00ad\\s+")
_LETTER = r"[^\W\d_]"
_HYPHEN = re.compile(rf"(?<={_LETTER}) - (?={_LETTER})")
_BROKEN_WORD = re.compile(rf"{_LETTER}[-\u2010\u2011][^\S\n]{{0,8}}\n")
_OWN_CAPITAL = re.compile(rf"(?<!\w)\[({_LETTER})\](?={_LETTER})")
# Soft hyphens, joiners and Markdown characters inside of words or directly beside them.
_WITHIN_WORDS = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff*`\\\\]|~~")
_DASHES = re.compile("[\u2010-\u2015\u2212\ufe58\ufe63\uff0d-]+(?: [\u2010-\u2015\u2212-]+)*")
_NO_WORDING = re.compile("[\"'\u2018-\u201f\u2039\u203a\u00ab\u00bb\u300c-\u300f\u00b4#>|_\\[\\]]")
_EDGES = " .,;:!?。，、；：！？-"


def wording(text: str) -> str:
    """Return the normalised words and punctuation of `text`, with one space between and around them.

    White space, quotation marks, Markdown characters, link targets, reference numbers and the page headings
    of PDFs are removed. Letter case, widths and ligatures (NFKC), dashes, and a first letter in brackets are
    normalised. Takes linear time.
    """
    # White space is normalised first, because patterns that match runs of it would take quadratic time.
    text = " ".join(_SOFT_BREAK.sub("", _PAGE_BREAK.sub("", _BULLET.sub("", text))).split())
    text = _REFERENCE.sub(" ", _LINK_TARGET.sub(" ", _OWN_CAPITAL.sub(r"\1", text)))
    text = unicodedata.normalize("NFKC", _ELLIPSIS.sub(" … ", text).replace("…", "\ue000"))
    text = _DASHES.sub("-", _WITHIN_WORDS.sub("", text))
    tokens = _TOKEN.findall(_NO_WORDING.sub(" ", text).casefold().replace("\ue000", "…"))
    return f" {' '.join(tokens)} "


def searchable(text: str) -> str:
    """Return the `wording` of `text` and, if lines end inside of words, a second copy without hyphens.

    It is unknown whether a hyphen at the end of a line is part of the word, so both forms are searched.
    """
    words = wording(_PRIVATE.sub(" ", text))
    joint = "\n" * (GAP_CHARACTERS + 1)  # longer than what an ellipsis may replace
    return f"{words}{joint}{_HYPHEN.sub('', words)}" if _BROKEN_WORD.search(text) else words


def blank_markup(text: str) -> str:
    """Return a text of the same length with spaces for link targets, reference numbers and page headings."""
    for pattern in (_PAGE_BREAK, _LINK_TARGET, _REFERENCE):
        text = pattern.sub(lambda found: " " * len(found[0]), text)
    return text


def split_at_ellipses(text: str) -> list[str]:
    """Return the parts of a quotation between its ellipses."""
    return _ELLIPSIS.split(text)


def count_words(text: str) -> float:
    """Return the number of words of `text`; for scripts without spaces, it is estimated from the length."""
    unspaced = sum(len(found[0]) / _PER_WORD[found.lastgroup or ""] for found in _UNSPACED.finditer(text))
    spaced = _UNSPACED.sub(" ", text).split()
    return unspaced + sum(1 for word in spaced if any(map(str.isalnum, word)))


@dataclass(frozen=True, slots=True)
class _Gap:
    """What may occur between two parts of a quotation, before the first or after the last."""

    characters: int = 0
    """The maximum number of characters of the source."""
    inserted: tuple[str, ...] = ()
    """The texts in brackets, each as a `wording`."""

    def joined(self, other: "_Gap") -> "_Gap":
        return _Gap(max(self.characters, other.characters), self.inserted + other.inserted)

    def admits(self, replaced: str, source: str, *, is_edge: bool = False) -> bool:
        """Whether the brackets may replace `replaced`. At an edge they may also replace nothing."""
        has_words = is_edge or any(map(str.isalnum, replaced))
        return all(
            is_filler(one) or (has_words and is_supported(one, replaced, source)) for one in self.inserted
        )


@dataclass(frozen=True, slots=True)
class Quotation:
    """A quotation, split into parts at its ellipses and insertions."""

    parts: tuple[str, ...]
    gaps: tuple[_Gap, ...]
    """One gap before each part, and one after the last."""

    @classmethod
    def of(cls, text: str) -> "Quotation":
        """Parse the text between quotation marks. Punctuation at its end may belong to the sentence."""
        inserted: list[str] = []

        def taken(found: re.Match[str]) -> str:
            if len(inserted) == _MAX_INSERTIONS:
                return found[0]
            inserted.append(wording(found[0][1:-1]))
            return chr(0xE000 + len(inserted))

        text = _INSERTION.sub(taken, _PRIVATE.sub(" ", _OWN_CAPITAL.sub(r"\1", text)))
        parts, gaps = list[str](), [_Gap()]
        for piece in re.split("([…\ue001-\uf8ff])", wording(text)):
            if piece == "…":
                gaps[-1] = gaps[-1].joined(_Gap(GAP_CHARACTERS))
            elif _PRIVATE.fullmatch(piece):
                words = inserted[ord(piece) - 0xE001]
                gaps[-1] = gaps[-1].joined(_Gap(INSERTION_CHARACTERS, (words,)))
            elif words := piece.strip(_EDGES):
                parts.append(f" {words} ")
                gaps.append(_Gap())
        return cls(tuple(parts), tuple(gaps))

    def occurs_in(self, source: str) -> bool:
        """Whether the complete parts occur in `source` (a `searchable`), in order and near each other.

        Single words with gaps between them are never a match, because they would match almost any text.
        """
        words = sum(token[0].isalnum() for part in self.parts for token in part.split())
        if len(self.parts) > 1 and words < LEAST_WORDS_PER_PART * len(self.parts):
            return False
        unhyphened = tuple(_HYPHEN.sub("", part) for part in self.parts)
        readings = dict.fromkeys((self.parts, unhyphened))
        if any(_occur(parts, self.gaps, source) for parts in readings):
            return True
        return len(self.parts) == 1 and _occurs_around_speaker(self.parts[0], source)


def _occurs_around_speaker(words: str, source: str) -> bool:
    """Whether words occur with the name of who says them at one of their pauses."""
    for pause in islice(_PAUSE.finditer(words), _MAX_PAUSES):
        before, after = words[: pause.start() + 1], words[pause.end() - 1 :]
        if min(len(before.split()), len(after.split())) < LEAST_WORDS_PER_PART:
            continue
        start = source.find(before)
        for _ in range(_MAX_BEGINNINGS):
            if start < 0:
                break
            end = start + len(before)
            found = source.find(after, end, end + SPEAKER_CHARACTERS + len(after))
            speaker = _SPEAKER.fullmatch(source[end:found]) if found >= 0 else None
            if speaker and SAYS.search(speaker[1]) and not _FIGURE.search(speaker[1]):
                return True
            start = source.find(before, start + 1)
    return False


def _occur(parts: Sequence[str], gaps: Sequence[_Gap], source: str) -> bool:
    if not parts:
        return True
    start = source.find(parts[0])
    for _ in range(_MAX_BEGINNINGS):
        if start < 0:
            return False
        before = source[max(start - INSERTION_CHARACTERS, 0) : start]
        if gaps[0].admits(before, source, is_edge=True) and _follow(parts, gaps[1:], source, start):
            return True
        start = source.find(parts[0], start + 1)
    return False


def _follow(parts: Sequence[str], gaps: Sequence[_Gap], source: str, start: int) -> bool:
    """Whether the parts after the first, which begins at `start`, occur where their gaps allow."""
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
