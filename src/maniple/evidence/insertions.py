"""Words in brackets that a writer puts into a quotation: what they may say."""

import re

_NOTES = (
    "sic emphasis added mine ours original italics hervorhebung hinzugefügt "
    "a an the this that these those who which i you he she it we they me him her us them my your his its our "
    "their of to and is are was were has have had "
    "der die das den dem des ein eine einen einem einer er sie es wir ich ihr ihm ihn ihnen "
    "le la les l un une des il elle ils elles on ce cette ces lui leur "
    "el los las una él ella ellos ellas lo gli uno egli loro o os as ele ela eles"
)
_FREE = frozenset((*_NOTES.split(), *"原文如此着重号为笔者所加ママ"))
# As a `wording` has them: in lower case, without apostrophes, and ideographs one by one.
_NEGATION = re.compile(
    r"\b(?:not|never|no|none|nobody|nothing|nowhere|nor|neither|without|cannot|hardly|barely|scarcely|"
    r"\w{2,7}n t|failed|fails|refused|refuses|denied|denies|"
    r"nicht|nichts|nie|niemals|niemand|ohne|kein\w{0,2}|ne|pas|jamais|sans|aucune?|rien|"
    r"nunca|jamás|sin|ningun\w|ningún|non|mai|senza|nessun\w?|não|sem|nenhum\w?|niet|nooit|geen|zonder|"
    r"inte|aldrig|ikke|aldri|nigdy|bez|не|нет|никогда|без)\b|[不没沒未非无無莫勿别]|な い|ま せ ん|않|못"
)
_FIGURE = re.compile(r"\d+(?: [.,] \d+)*")


def adds_nothing(inserted: str) -> bool:
    """Whether words (a `wording`) may stand in brackets where the source has none: a note, a pronoun."""
    return all(word in _FREE for word in inserted.split() if word[0].isalnum())


def is_backed(inserted: str, replaced: str, source: str) -> bool:
    """Whether words in brackets may stand for `replaced`, which is a part of `source`; all are `wording`s.

    A negation must stand for one, and a figure in the source; where figures are replaced, one of them stays.
    """
    if _NEGATION.search(inserted) and not _NEGATION.search(replaced):
        return False
    figures, before = _FIGURE.findall(inserted), _FIGURE.findall(replaced)
    if figures and before and not set(figures) & set(before):
        return False
    return all(f" {figure} " in source for figure in figures)
