"""Whether a citation that a repair adds names a source that has what the claim consists of."""

from collections.abc import Iterable

from maniple.claims.figures import find_figures
from maniple.claims.source_index import SourceIndex
from maniple.evidence.citations import CitedClaim, find_claims
from maniple.evidence.wording import Quotation, searchable

_SAME_SHARE = 0.5
"""The share of common words from which a claim is taken for another version of a former one."""
_LONG_WORD = 5


def find_added_citations(before: str, after: str) -> dict[int, list[CitedClaim]]:
    """Return the claims of `after` by the sources that were not cited for them in `before`."""
    unchanged = {*find_claims(before)}
    former = [(_words(one.text), {*one.numbers}) for one in unchanged]
    added: dict[int, list[CitedClaim]] = {}
    for claim in (one for one in find_claims(after) if one not in unchanged):
        for number in {*claim.numbers} - _former_numbers(_words(claim.text), former):
            added.setdefault(number, []).append(claim)
    return added


def has_claims(source: str, index: SourceIndex, claims: Iterable[CitedClaim]) -> bool:
    """Return whether a source has the quotations and figures of each claim, or else one of its long words.

    `source` is its `searchable` text.
    """
    known = {*source.split()}
    for claim in claims:
        figures = find_figures(claim.text)
        if not all(Quotation.of(one).occurs_in(source) for one in claim.quoted):
            return False
        words = (one for one in _words(claim.text) if len(one) >= _LONG_WORD or not one.isascii())
        has_words = bool(claim.quoted or figures) or any(one in known for one in words)
        if not (has_words and all(map(index.find_figure, figures))):
            return False
    return True


def _former_numbers(words: set[str], former: Iterable[tuple[set[str], set[int]]]) -> set[int]:
    """Return the sources of the former claim that is most similar to these words."""
    best, numbers = 0.0, set[int]()
    for others, cited in former:
        common = len(words & others)
        share = common / max(len(words | others), 1)
        if share > best and common >= _SAME_SHARE * min(len(words), len(others)):
            best, numbers = share, cited
    return numbers


def _words(text: str) -> set[str]:
    return {word for word in searchable(text).split() if word[0].isalnum()}
