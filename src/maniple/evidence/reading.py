"""One text that was read at one address, made fit to be kept."""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from maniple.evidence.addresses import URL_CHARACTERS, comparable_url, without_fragment
from maniple.evidence.record import Source, SourceKind
from maniple.text import fix_surrogates

MOST_SOURCES = 2_000
"""Of a run; what comes after has the number 0. So many addresses, too, may lead to them from elsewhere."""
MOST_CHARACTERS = 20_000_000
"""Of all texts of a run; what comes after is numbered, and its text is not kept."""
TEXT_CHARACTERS = 2_000_000
TITLE_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Reading:
    """A text within the bounds of the record, with the addresses by which it is known."""

    url: str
    addresses: Mapping[str, str]
    """Its own and the one that was asked for, if that is another, by the form that tells sources apart."""
    title: str
    kind: SourceKind
    text: str
    sha256: str
    retrieved_at: float

    @classmethod
    def of(cls, url: str, title: str, kind: SourceKind, text: str, asked: str = "") -> "Reading":
        """Return what is kept of it; the clock says when."""
        url, asked = fix_surrogates(without_fragment(url)), fix_surrogates(without_fragment(asked))
        addresses = {comparable_url(url): url}
        if asked and len(asked) <= URL_CHARACTERS:
            addresses.setdefault(comparable_url(asked), asked)
        title = " ".join(fix_surrogates(title[:TITLE_CHARACTERS]).split())
        text = fix_surrogates(text[:TEXT_CHARACTERS])
        digest = hashlib.sha256(text.encode()).hexdigest()
        return cls(url, addresses, title or url, kind, text, digest, time.time())

    @property
    def comparable(self) -> str:
        """The form of its own address."""
        return next(iter(self.addresses))

    def finds_room(self, sources: int) -> bool:
        """Whether it may be one more source beside so many."""
        return sources < MOST_SOURCES and len(self.url) <= URL_CHARACTERS

    def first(self, number: int) -> Source:
        """Return the source that begins with it."""
        return Source(number, self.url, self.title, self.kind, self.retrieved_at, self.sha256)

    def joined(self, known: Source) -> Source:
        """Return the source that was `known`, with it: a page is not a mere search result again."""
        if self.kind == "result" and known.kind == "page":
            return known
        return replace(self.first(known.number), url=known.url)
