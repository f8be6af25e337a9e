"""What a search engine looks like to the rest of the house."""

from dataclasses import dataclass
from typing import Protocol

from maniple.errors import SearchError

SET_ASIDE_SECONDS = 60.0
"""How long a provider that failed is not asked."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One result."""

    title: str
    url: str
    """Absolute, http or https; `folder:` for a document of the local folder."""
    content: str
    """An extract of the page, as the engine chose it."""
    score: float | None = None
    """How well it fits, 0 to 1, when the engine says so."""
    source: str = ""
    """Which provider found it; of several, all of them."""


class ProviderFailure(SearchError):
    """A provider could not be asked; `rest_seconds` is how long it should not be asked again."""

    def __init__(self, message: str, *, rest_seconds: float = SET_ASIDE_SECONDS) -> None:
        super().__init__(message)
        self.rest_seconds = rest_seconds
        """0 when the query is at fault, and another one may be answered."""


class RateLimited(ProviderFailure):
    """A provider wants fewer requests. It is not asked before its time, even when nobody else is left."""


class SearchProvider(Protocol):
    """A search engine."""

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """At most `limit` hits, best first; empty when nothing was found.

        Raises:
            SearchError: the engine could not be asked.
        """
        ...
