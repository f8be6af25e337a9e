"""A text that was read at an address, cut to the limits of the record."""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from maniple.evidence.address_secrets import hide_secrets
from maniple.evidence.addresses import URL_CHARACTERS, comparable_url, without_fragment
from maniple.evidence.record import Source, SourceKind, UnreadPage
from maniple.reading.publication import Publication
from maniple.text import fix_surrogates

MAX_SOURCES = 2_000
"""Sources of a run; further ones get the number 0. The same limit applies to redirecting addresses."""
MAX_CHARACTERS = 20_000_000
"""Characters of all texts of a run; further sources get a number, but their texts are not stored."""
TEXT_CHARACTERS = 2_000_000
TITLE_CHARACTERS = 300
_DIGEST_CHARACTERS = 8


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text within the limits of the record, with its addresses."""

    url: str
    addresses: Mapping[str, str]
    """Its own address and the requested one, if they differ, without secrets, by their comparable forms."""
    title: str
    kind: SourceKind
    text: str
    sha256: str
    retrieved_at: float

    @classmethod
    def of(cls, url: str, title: str, kind: SourceKind, text: str, asked: str = "") -> "SourceText":
        """Return the text cut to the limits; the retrieval time is now."""
        url, asked = fix_surrogates(without_fragment(url)), fix_surrogates(without_fragment(asked))
        addresses = {_form_of(url): hide_secrets(url)}
        if asked and len(asked) <= URL_CHARACTERS:
            addresses.setdefault(_form_of(asked), hide_secrets(asked))
        url = hide_secrets(url)
        title = " ".join(fix_surrogates(title[:TITLE_CHARACTERS]).split())
        text = fix_surrogates(text[:TEXT_CHARACTERS])
        digest = hashlib.sha256(text.encode()).hexdigest()
        return cls(url, addresses, title or url, kind, text, digest, time.time())

    @property
    def comparable(self) -> str:
        """The comparable form of its own address."""
        return next(iter(self.addresses))

    def fits(self, sources: int) -> bool:
        """Whether it may be added to a record that has this number of sources."""
        return sources < MAX_SOURCES and len(self.url) <= URL_CHARACTERS

    def as_source(self, number: int) -> Source:
        """Return a new source with this text as its first one."""
        return Source(number, self.url, self.title, self.kind, self.retrieved_at, self.sha256)

    def merge_into(self, known: Source) -> Source:
        """Return `known` updated with this text. A search result does not replace a page."""
        if self.kind == "result" and known.kind == "page":
            return known
        return replace(
            known,
            title=self.title,
            kind=self.kind,
            retrieved_at=self.retrieved_at,
            sha256=self.sha256,
            inherited=False,
            also=(),
        )


def describe_unread(url: str, reason: str) -> tuple[str, UnreadPage]:
    """Return the comparable form of an address, and the page within the limits of the record."""
    form, address = describe_attempt(url)
    return form, UnreadPage(address, _cut(reason), time.time())


def describe_attempt(url: str) -> tuple[str, str]:
    """Return the comparable form of an address, and the address within the limits of the record."""
    address = fix_surrogates(without_fragment(url[:URL_CHARACTERS]))
    return _form_of(address), hide_secrets(address)


def describe_source(source: Source, publication: Publication) -> Source:
    """Return `source` with what is known of its publication, cut to the limits of the record."""
    return replace(
        source,
        published=_cut(publication.published) or source.published,
        author=_cut(publication.author) or source.author,
        publisher=_cut(publication.publisher) or source.publisher,
    )


def _cut(text: str) -> str:
    return " ".join(fix_surrogates(text[:TITLE_CHARACTERS]).split())


def _form_of(url: str) -> str:
    """Return the `comparable_url` of an address; a digest tells apart those that only differ in a secret."""
    shown = hide_secrets(url)
    if shown == url:
        return comparable_url(url)
    digest = hashlib.sha256(comparable_url(url).encode()).hexdigest()
    return f"{comparable_url(shown)}#{digest[:_DIGEST_CHARACTERS]}"
