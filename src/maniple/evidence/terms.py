"""Whether a few words in quotation marks are what something is called, and not what somebody said."""

import re

from maniple.evidence.wording import LEAST_WORDS_CITED, words_in

_BEFORE_CHARACTERS = 40
_ARTICLES = (
    "the|an?|its|his|her|their|our|der|die|das|den|dem|des|eine?[mnrs]?|le|la|les|une?|el|los|las|"
    "il|lo|gli|uno|os?|as|um|uma|de|het|een|η|ο|το|οι|τα"
)
_NAMES = (
    r"so-called|called|dubbed|termed|named|nicknamed|known as|labell?ed|terms?|words?|phrases?|concepts?|"
    r"titled|entitled|sogenannte\w?|genannt|begriff|dite?s?|appelée?s?|llamad[oa]s?|dett[oa]|cosiddett\w|"
    r"dit[oa]s?|chamad[oa]s?|zwan[yae]|называем\w{2,3}|kallade?|باسم"
)
# An article, a word that gives a name, or whose it is.
_NAMING = re.compile(
    rf"(?:(?<!\w)(?:{_ARTICLES}|{_NAMES})\s|\w['’](?:s|un|ın|in|ün)\s|s['’]\s|\b[ld]['’]|(?:所谓|所謂|称为|稱為|称作|叫做|名为|的|の))\s?\Z",
    re.IGNORECASE,
)
# Its spaces are between syllables, of which most words have two.
_VIETNAMESE = re.compile("[\u1ea0-\u1ef9\u01a0\u01a1\u01af\u01b0\u0110\u0111]")


def is_term(quoted: str, before: str) -> bool:
    """Whether `quoted`, of few words, is a term or a name by its own letters or by the text before it."""
    words = words_in(quoted)
    if _VIETNAMESE.search(quoted):
        words /= 2
    if words < LEAST_WORDS_CITED and quoted != quoted.lower():
        return True
    return words <= 1.5 or _NAMING.search(before[-_BEFORE_CHARACTERS:]) is not None
