"""Where sentences end, in the scripts and languages of reports.

Two sentences that are taken for one are better than one that is cut: its first part would lose its citation.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

MAX_CHARACTERS = 2_000
"""The length of the longest part of a sentence."""
MAX_FIGURES = 40
"""The most figures of a part of a sentence."""
_PAIR_CHARACTERS = 600
# The first characters stand before the alternatives, so that a search passes over all others fast.
_END = re.compile(
    r"[.!?…。！？｡؟۔।॥։።\n](?:(?<=[.!?…])[.!?…]*[\"'”’»›)\]}*_]*(?=\s|\Z)|(?<=[。！？｡])[。！？｡]*[”」』’）)】]*"
    r"|(?<=[؟۔।॥։።])[؟۔।॥։።]*[”’»)]*(?=\s|\Z)|(?<=\n))"
)
_PAIRS = re.compile(
    rf"“[^“”]{{0,{_PAIR_CHARACTERS}}}”|„[^„“”]{{0,{_PAIR_CHARACTERS}}}[“”]|«[^«»]{{0,{_PAIR_CHARACTERS}}}»"
    rf"|「[^「」]{{0,{_PAIR_CHARACTERS}}}」|『[^『』]{{0,{_PAIR_CHARACTERS}}}』|\([^()]{{0,{_PAIR_CHARACTERS}}}\)"
    rf"|（[^（）]{{0,{_PAIR_CHARACTERS}}}）|(?<!\w)\"(?=\S)[^\"\n]{{0,{_PAIR_CHARACTERS}}}\""
)
_OPENS = re.compile(r"[“„«「『(（\"]")
_ABBREVIATIONS = (
    "abb abk abs acad al anm approx apr aufl aug av avg bd betr bldg bzgl bzw ca cap capt cca cf cfr ch "
    "chap cie co corp dec dept dez dipl dott dr drs eds einschl eq eqs esp est etc etw evtl feb febr ff "
    "fig figs fn fr frz geb gegr gem gen gesch gest ggf ggfs gov hon hr hrsg ibid inc incl inkl insb "
    "insg ing jan jap jg jh jhd jr jul jun kap kgl lic ltd ltda maj mill mind mio misc mlle mm mme mgr "
    "möglw mr mrd mrs ms msgr mt nb nos nov nr nrn núm núms okt op pag pág págs pp pres prof prot prov "
    "pte pvt rd ref refs resp rev sen sept sep sog sogen sr sra srta ss ste str tab tsd tít univ usf "
    "usw uvm vgl vol vols vs ziff zit zw zzgl ав гг г др им млн млрд напр обл проц п пп просп р рис руб "
    "с см стр св т табл тыс ул ч"
)
_KNOWN = frozenset(_ABBREVIATIONS.split())
_KNOWN_BEFORE_FIGURES = _KNOWN.union(
    ("art", "ed", "ex", "lit", "max", "min", "no", "par", "pos", "pt", "sec", "st", "tel")
)
"""Also abbreviations that are ordinary words, too."""
_LAST_WORD_CHARACTERS = 24
_LAST_WORD = re.compile(r"(?<![^\W_])([^\W\d_]+)\.\Z")
# `z. B.`, `U.S.`, `e.g.`, `J. Smith`; but `5 m.` ends a sentence.
_INITIAL = re.compile(
    r"(?:^|[\s.(\[“„«-])(?<!\d )(?<!\d\u00a0)[^\W\d_]\.\Z|\d[ \u00a0](?![mgsthlKWVANJCF])[^\W\d_]\.\Z"
)
_NUMBER = re.compile(r"(?<![\w.,])\d{1,2}\.\Z")
_NUMBER_OF_ITEM = re.compile(r"\s*\d{1,2}\.\Z")
# In German, which has capitals behind ordinal numbers.
_BEFORE_ORDINAL = re.compile(
    r"\b(?:am|im|vom|zum|zur|beim|der|die|das|den|dem|des|einen?|jede[mnrs]?)\s+\d{1,2}\.\Z", re.IGNORECASE
)
_AFTER_ORDINAL = re.compile(
    r"(?:Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|Jan|Feb|Apr|Aug|"
    r"Sept?|Okt|Nov|Dez|Jahrhundert|Jahrtausend|Jh|Quartal|Halbjahr|Platz|Rang|Weltkrieg|Jahrestag)\w{0,3}\b"
)
_SURE_ENDS = frozenset("。！？｡؟۔।॥։።")
_FOLLOWING_CHARACTERS = 40
_CLAUSE_END = re.compile(r"[;；。]\s*|,\s+|[，、]|\s[–—-]\s|[:：]\s+")
_SPACE = re.compile(r"\s+")
_FIGURE = re.compile(r"\d+(?:[.,'’\u00a0\u202f ]\d{3})*(?:[.,]\d+)*")


def find_sentence_ends(
    text: str, closed: Iterable[tuple[int, int]] = (), breaks: Sequence[int] = ()
) -> list[int]:
    """Return the offsets at which the sentences of a paragraph end, in order; the last one is its length.

    No sentence ends inside of a `closed` span, of brackets or of a quotation. `breaks` are the offsets of
    citations: behind one, a small letter may begin a sentence.
    """
    # Most paragraphs have no pairs, which a search for their beginnings finds out sooner.
    pairs = _PAIRS.finditer(text) if _OPENS.search(text) else ()
    inside = _Inside([*(one.span() for one in pairs), *closed])
    cited = frozenset(breaks)
    ends: list[int] = []
    for found in _END.finditer(text):
        at = found.end()
        if at >= len(text) or inside(at):
            continue
        if found[0] == "\n" or _ends_sentence(text, found, is_cited=_is_cited(text, at, cited)):
            ends.append(at)
    return [*ends, len(text)]


def _is_cited(text: str, at: int, cited: frozenset[int]) -> bool:
    """Whether a citation stands between the end of a sentence and the next word."""
    for offset in range(at, min(at + _FOLLOWING_CHARACTERS, len(text))):
        if offset in cited:
            return True
        if not text[offset].isspace():
            return False
    return False


def _ends_sentence(text: str, found: re.Match[str], *, is_cited: bool) -> bool:
    mark = found[0]
    if mark[0] in _SURE_ENDS:
        return True
    following = text[found.end() : found.end() + _FOLLOWING_CHARACTERS].lstrip()
    if following[:1].islower() and not is_cited:
        return False
    if mark[0] != "." or mark.startswith(".."):
        return True
    before = text[max(found.start() - _LAST_WORD_CHARACTERS, 0) : found.start() + 1]
    return not (_is_abbreviated(before, following) or _is_ordinal(before, following))


def _is_abbreviated(before: str, following: str) -> bool:
    if _INITIAL.search(before):
        return True
    word = _LAST_WORD.search(before)
    if word is None:
        return False
    return word[1].casefold() in (_KNOWN_BEFORE_FIGURES if following[:1].isdecimal() else _KNOWN)


def _is_ordinal(before: str, following: str) -> bool:
    """Whether a number with a full stop is an ordinal number (`1. Januar`) or the number of an item."""
    if not _NUMBER.search(before):
        return False
    is_german = _AFTER_ORDINAL.match(following) or _BEFORE_ORDINAL.search(before)
    return is_german is not None or _NUMBER_OF_ITEM.match(before) is not None


def split_long(
    text: str, start: int, end: int, closed: Iterable[tuple[int, int]] = ()
) -> list[tuple[int, int]]:
    """Return the parts of a sentence, all of it: each of at most `MAX_CHARACTERS` and `MAX_FIGURES`.

    A part ends at a clause if possible, else at a space.
    """
    figures = [one.span() for one in _FIGURE.finditer(text, start, end)]
    if end - start <= MAX_CHARACTERS and len(figures) <= MAX_FIGURES:
        return [(start, end)]
    inside = _Inside(closed)
    ends = [
        [one.end() for one in form.finditer(text, start, end) if not inside(one.end())]
        for form in (_CLAUSE_END, _SPACE)
    ]
    parts: list[tuple[int, int]] = []
    starts = [low for low, _ in figures]
    while start < end:
        limit = min(start + MAX_CHARACTERS, end)
        further = bisect_left(starts, start) + MAX_FIGURES
        if further < len(figures):
            limit = min(limit, starts[further])
        cut = limit if limit == end else _find_cut(start, limit, ends, figures)
        parts.append((start, cut))
        start = cut
    return parts


def _find_cut(
    start: int, limit: int, ends: Sequence[Sequence[int]], figures: Sequence[tuple[int, int]]
) -> int:
    """Return the last offset up to `limit` at which a part may end, not within a figure."""
    for offsets in ends:
        at = bisect_right(offsets, limit) - 1
        if at >= 0 and offsets[at] > start:
            return offsets[at]
    figure = bisect_right(figures, (limit,)) - 1
    if figure >= 0 and start < figures[figure][0] < limit < figures[figure][1]:
        return figures[figure][0]
    return limit


class _Inside:
    """Whether an offset is inside of one of some spans, which may overlap."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._starts, self._ends = list[int](), list[int]()
        for low, high in sorted(spans):
            if self._ends and low < self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], high)
            else:
                self._starts.append(low)
                self._ends.append(high)

    def __call__(self, offset: int) -> bool:
        at = bisect_right(self._starts, offset - 1) - 1
        return at >= 0 and offset < self._ends[at]
