"""One text that was read at one address, made fit to be kept."""

import hashlib
import time
from dataclasses import dataclass, replace

from maniple.evidence.addresses import URL_CHARACTERS, comparable_url, without_fragment
from maniple.evidence.record import Source, SourceKind
from maniple.text import whole

MOST_SOURCES = 2_000
"""Of a run; what comes after has the number 0."""
MOST_CHARACTERS = 20_000_000
"""Of all texts of a run; what comes after is numbered, and its text is not kept."""
TEXT_CHARACTERS = 1_000_000
TITLE_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Reading:
    """A text within the bounds of the record, with the form of its address that tells sources apart."""

    url: str
    comparable: str
    title: str
    kind: SourceKind
    text: str
    sha256: str
    retrieved_at: float

    @classmethod
    def of(cls, url: str, title: str, kind: SourceKind, text: str) -> "Reading":
        """Return what is kept of it; the clock says when."""
        url = whole(without_fragment(url))
        title = " ".join(whole(title[:TITLE_CHARACTERS]).split())
        text = whole(text[:TEXT_CHARACTERS])
        digest = hashlib.sha256(text.encode()).hexdigest()
        return cls(url, comparable_url(url), title or url, kind, text, digest, time.time())

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
