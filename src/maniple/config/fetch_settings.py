"""How pages are read for the researcher."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from maniple.config.section import Section
from maniple.config.values import ApiKey, OptionalText


def _is_contact(contact: str | None) -> str | None:
    if contact is not None and not (contact.isascii() and contact.isprintable() and len(contact) <= 200):
        raise ValueError("this goes into a header of every request: plain ASCII, at most 200 characters")
    return contact


class FetchSettings(Section):
    """Reading pages for the researcher."""

    allow_private: tuple[str, ...] = ()
    """Networks in CIDR form that may be fetched although they are private, such as `127.0.0.0/8`."""
    timeout_seconds: float = Field(default=30, gt=0)
    """Of a page with its redirects, its frames and its site's robots.txt; of reading it; of rendering it."""
    max_bytes: int = Field(default=5_000_000, gt=0)
    max_redirects: int = Field(default=5, ge=0)
    max_characters: int = Field(default=12_000, gt=0)
    robots: bool = True
    """Leave out what a site's robots.txt forbids: the agent chooses pages by itself, and nobody looks on."""
    images: bool = True
    """Show a model that sees the pictures of pages it reads: three of a page, four in a request."""
    contact: Annotated[OptionalText, AfterValidator(_is_contact)] = None
    """An address at which the owners of sites find whoever runs this; part of the agent's name."""
    cache_bytes: int = Field(default=20_000_000, ge=0)
    """Pages kept in memory; their sites are asked for changes (ETag, Last-Modified) before each use."""
    jina: Literal["auto", "always", "fallback", "never"] = "auto"
    """When Jina's reader fetches instead: `auto` first if there is a key, `fallback` when fetching failed."""
    jina_api_key: ApiKey = None
    jina_base_url: str = "https://r.jina.ai"
