"""Whether the words that a writer gave for a passage may take its place."""

import re
from collections.abc import Iterable

from maniple.evidence.check import Finding, SourceCheck
from maniple.reading.fences import Fences

LEAST_SHARE = 0.5
"""Of the characters of a passage that nobody objected to."""
_KINDS = {
    "table": re.compile(r"[ \t]*\|"),
    "list": re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]"),
    "heading": re.compile(r" {0,3}#{1,6}[ \t]"),
}


async def mends(passage: str, findings: Iterable[Finding], reply: str, check: SourceCheck) -> bool:
    """Say whether `reply` keeps what is good in `passage`, in which `findings` do not hold.

    It may not leave code open, turn a table, a list, a heading or a paragraph into something else, lose a
    citation that nobody objected to, or be much shorter than what nobody objected to.
    """
    objected = [finding.citation for finding in findings]
    doubted = {number for one in objected if one.kind == "quotation" for number in one.numbers}
    kept = len(passage.strip()) - sum(one.end - one.start for one in objected)
    if len(reply) < LEAST_SHARE * kept or _kinds(reply) != _kinds(passage):
        return False
    return await check.cited(passage) - doubted <= await check.cited(reply)


def _kinds(text: str) -> set[str]:
    """Return what `text` is made of beside paragraphs; code that it leaves open is a kind of its own."""
    fences, prose = Fences(), []
    for line in text.splitlines():
        if not fences.take(line).is_code:
            prose.append(line)
    kinds = {kind for kind, begin in _KINDS.items() if any(map(begin.match, prose))}
    return kinds | {"open code"} if fences.mark else kinds
