"""Sources that are the same work at several addresses: for a claim they are one witness."""

import asyncio
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from maniple.evidence.record import Evidence, Source, find_newest_text

MIN_CHARACTERS = 200
"""Shorter texts are not compared: two pages that show nearly nothing are no copies of each other."""
_NO_LETTER = re.compile(r"[\W_]+")
_DOI = re.compile(r"(?<![\w.])10\.\d{4,9}/[^\s\"'<>?#&]{2,200}")
_VIEW = re.compile(r"(?:/(?:full|pdf|epdf|abstract|html|meta|references)|\.pdf|[.,;:/)]+)+$")
"""What an address has behind a DOI: the view of the work, and punctuation."""


@dataclass(frozen=True, slots=True)
class DuplicateSource:
    """A source that has the text, or the DOI, of one with a lower number."""

    number: int
    first: int
    doi: str = ""
    """The DOI that both have; "" if their texts are the same."""

    def describe(self) -> str:
        """Return how the two belong together, to follow the number of the source."""
        return f"same work as [{self.first}], DOI {self.doi}" if self.doi else f"same text as [{self.first}]"


async def find_duplicates(evidence: Evidence) -> list[DuplicateSource]:
    """Return the sources that repeat an earlier one, by number.

    Texts are compared without case, punctuation and white space. Only pages that were read have texts to
    compare; a DOI stands in an address.
    """
    known: dict[str, int] = {}
    found: list[DuplicateSource] = []
    for source in await evidence.sources():
        doi = find_doi((source.url, *source.also))
        digest = await _digest_of(evidence, source)
        keys = [key for key in (f"doi:{doi}" if doi else "", digest) if key]
        first = next((known[key] for key in keys if key in known), None)
        if first is not None:
            is_by_doi = known.get(f"doi:{doi}") == first
            found.append(DuplicateSource(source.number, first, doi if is_by_doi else ""))
        for key in keys:
            known.setdefault(key, source.number if first is None else first)
    return found


def find_doi(addresses: Iterable[str]) -> str:
    """Return the first DOI in the addresses, in lower case; "" for none."""
    for address in addresses:
        if match := _DOI.search(unquote(address)):
            return _VIEW.sub("", match[0].lower())
    return ""


def describe_duplicates(duplicates: Sequence[DuplicateSource]) -> list[str]:
    """Return for the reporter which sources are one witness, one line each."""
    return [
        f"[{one.number}] is the {one.describe()}: together they are one witness, not two."
        for one in duplicates
    ]


async def _digest_of(evidence: Evidence, source: Source) -> str:
    """Return the digest of the letters and digits of a page; "" where there is too little to compare."""
    text = await find_newest_text(evidence, source) if source.kind == "page" else None
    return await asyncio.to_thread(_digest, text) if text else ""


def _digest(text: str) -> str:
    plain = _NO_LETTER.sub("", unicodedata.normalize("NFKC", text)).casefold()
    return hashlib.sha256(plain.encode()).hexdigest() if len(plain) >= MIN_CHARACTERS else ""
