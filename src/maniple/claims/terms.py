"""The words by which claims and passages are compared: stems, pairs of ideographs, names."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

STEM_CHARACTERS = 6
MAX_CACHED = 20_000
"""Words whose stems are remembered."""
_LEAST_LETTERS = 3
_LETTERS = frozenset("AEIOY")
"""Capitals that are words by themselves in some language. Others are names, as in `group B`."""
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0eff"
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W\d_{_UNSPACED}]+")
_ASCII_WORD = re.compile("[A-Za-z]+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_CAPITALISED = re.compile(rf"[^\W\d_{_UNSPACED}][^\W_{_UNSPACED}]*(?:[-'’][^\W_]+)*")
_SENTENCE_BEGINS = re.compile(r"(?:\A|[.!?:]\s+|\n)[\s\"“„«‘'(\[*_>#-]*\Z")
_PLURAL = 5
_STOP_TEXT = (
    "the and that this these those with from for was were are been has have had its their his her they "
    "which who whom into than then also about per said says year years not but all any can will would "
    "between until since there when where while more most some such only over under other "
    "our your you she him them "
    "der die das den dem des und ein eine einen einem einer eines ist sind war waren wird werden wurde "
    "wurden mit von für auf aus bei nach vor zur zum als auch sich nicht noch nur oder aber dass sie "
    "zwischen seit bis wie über unter hat haben hatte dies diese dieser dieses man rund etwa jahr jahre "
    "les des une est sont dans que qui par pour sur pas plus elle ils avec son ses été était ont cette "
    "entre depuis ces aux leur leurs mais sans sous ans année années environ "
    "los las una del con por para que como más sus este esta entre sobre año años fue ser son han "
    "gli della delle dei degli nel nella che con per una sono più come anche anni anno dal alla "
    "uma dos das com para que por mais como seu sua foi são ano anos "
    "het een van voor met niet zijn naar ook dan dit deze jaar jaren wordt werd "
    "это как что для или при был была были его они она году года лет"
)
_STOP_WORDS = frozenset(_STOP_TEXT.split())


def is_unspaced(text: str) -> bool:
    """Whether a third of the characters belong to a script without spaces between words."""
    return len(_IS_UNSPACED.findall(text)) * 3 > len(text)


def iterate_terms(text: str) -> Iterator[str]:
    """Yield the comparable terms of `text` in order: stems of words, and pairs of ideographs.

    Stop words, digits and words of one or two letters are left out, but not abbreviations in capitals.
    """
    for word in _WORD.findall(text):
        if _IS_UNSPACED.match(word):
            yield from (word[at : at + 2] for at in range(len(word) - 1))
        elif len(word) >= _LEAST_LETTERS:
            if term := _read_term(word):
                yield term
        elif word.isupper() and word not in _LETTERS:
            yield word.casefold()


def find_terms(text: str) -> frozenset[str]:
    """Return the different terms of `text`."""
    if text.isascii():
        return frozenset(filter(None, map(_read_ascii_term, _ASCII_WORD.findall(text))))
    return frozenset(iterate_terms(text))


def find_names(text: str) -> frozenset[str]:
    """Return the terms of the capitalised words of `text` that do not merely begin a sentence."""
    found = set[str]()
    for word in _CAPITALISED.finditer(text):
        if word[0][0].isupper() and not _SENTENCE_BEGINS.search(
            text[max(word.start() - 20, 0) : word.start()]
        ):
            found.update(iterate_terms(word[0]))
    return frozenset(found)


@lru_cache(maxsize=MAX_CACHED)
def _read_ascii_term(word: str) -> str:
    """Return the term of a word of ASCII letters; "" if it is left out."""
    if len(word) >= _LEAST_LETTERS:
        return _read_term(word)
    return word.casefold() if word.isupper() and word not in _LETTERS else ""


@lru_cache(maxsize=MAX_CACHED)
def _read_term(word: str) -> str:
    """Return the stem of a word; "" for a stop word."""
    folded = _fold(word)
    return "" if folded in _STOP_WORDS else _stem(folded)


def _fold(word: str) -> str:
    folded = word.casefold()
    return folded if folded.isascii() else unicodedata.normalize("NFC", folded)


def _stem(word: str) -> str:
    if len(word) >= _PLURAL and word.endswith("s"):
        word = word[:-1]
    return word[:STEM_CHARACTERS]
