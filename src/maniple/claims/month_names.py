"""Which names of months are words of another kind, too."""

from functools import cache

from maniple.reading.month_names import list_months

AMBIGUOUS_MONTHS = (
    "may mar march mars mart set out ago mag mei mai sep led jun jul lis dub bin ott eki sie maj august "
    "oca dic dez des dec nov cze paz ag gen lug giu geg wrz sty gru stu maa mac marca liepa leden vas "
    "kas"
)
"""Month names that are words of another kind in some language.

They need a capital letter, a day and a year, or a language in which they are months.
"""
RARE_MONTHS = (
    "pro tem noi ara kas nis marta juna jula juny jaan loka elo kov vas velj ožu gener lut lip lis srp agt"
)
"""Those that are other words, or names of people, in more texts. A capital letter is not enough for them."""

_SURE_MONTHS = {
    "cs": "led pro lis srp dub",
    "da": "maj mar okt dec nov",
    "de": "mai dez nov",
    "es": "mar sep ago dic nov",
    "et": "mai jaan mar nov dets",
    "fi": "loka elo",
    "fr": "mai mars sep nov",
    "hr": "velj ožu lip srp lis",
    "it": "mar mag giu lug ago set ott nov dic gen",
    "ca": "gener juny nov",
    "lt": "kov vas liepa",
    "nb": "mai mars des nov",
    "nl": "mei sep nov dec",
    "no": "mai mars des nov",
    "pl": "maj lut cze lip sie wrz paz lis gru marca sty",
    "pt": "mar maio set out ago dez nov",
    "ro": "mai noi nov dec mar",
    "sk": "marca",
    "sl": "maj marca",
    "sr": "marta juna jula maj mart",
    "sv": "maj mars dec nov",
    "tr": "mart oca nis tem kas ara",
}
"""Those of them that are months in their language, by its ISO 639 code; most are written small."""


@cache
def months_by_name() -> dict[str, int]:
    """Return the number of each month's name, 1 to 12, casefolded."""
    return {name.casefold(): number for name, number in list_months().items()}


@cache
def _ambiguous_months() -> frozenset[str]:
    return frozenset(f"{AMBIGUOUS_MONTHS} {RARE_MONTHS}".split())


@cache
def _rare_months() -> frozenset[str]:
    return frozenset(RARE_MONTHS.split())


def may_be_no_month(name: str, language: str) -> bool:
    """Return whether a name of a month, as it is written, is a word of another kind, as far as known."""
    folded = name.casefold()
    if folded not in _ambiguous_months() or folded in _SURE_MONTHS.get(language, "").split():
        return False
    return folded in _rare_months() or not name[0].isupper()
