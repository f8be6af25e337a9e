"""What a fetched page came to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Document:
    """A response as it came: its last address after redirects, its type and its decompressed bytes."""

    url: str
    media_type: str
    """Lower case, without parameters; empty when the server named none."""
    charset: str | None
    body: bytes


@dataclass(frozen=True, slots=True)
class Article:
    """The readable part of a page, ready for a model."""

    url: str
    """Where the page really was, after redirects."""
    title: str
    markdown: str
    """At most `max_characters` long plus a notice when it was cut; links and images are absolute."""
