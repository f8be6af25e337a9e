"""What a search engine looks like to the rest of the house."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One result."""

    title: str
    url: str
    """Absolute, http or https."""
    content: str
    """An extract of the page, as the engine chose it."""
    score: float | None = None
    """How well it fits, 0 to 1, when the engine says so."""


class SearchProvider(Protocol):
    """A search engine."""

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """At most `limit` hits, best first; empty when nothing was found.

        Raises:
            SearchError: the engine could not be asked.
        """
        ...
