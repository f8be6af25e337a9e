"""Search of scholarly papers: all providers concurrently, one hit for each paper."""

from collections.abc import Sequence
from dataclasses import replace

from maniple.errors import SearchError
from maniple.search.chain import SearchAnswer, SearchChain
from maniple.search.merging import sort_newest_first

MAX_CANDIDATES = 20
"""The most relevant papers of which the newest are chosen."""


class PaperSearch:
    """Searches papers with the providers of a chain that merges."""

    def __init__(self, chain: SearchChain) -> None:
        self._chain = chain

    @property
    def names(self) -> Sequence[str]:
        """The names of the providers."""
        return self._chain.names

    async def search(
        self, query: str, *, limit: int, source: str = "", is_newest_first: bool = False
    ) -> SearchAnswer:
        """Return at most `limit` papers of one provider, or of all, and which providers failed.

        The best come first; if `is_newest_first`, the newest of the `MAX_CANDIDATES` best ones.

        Raises:
            SearchError: no provider answered, or there is none of that name.
        """
        if source and source not in self.names:
            raise SearchError(f"{source!r} is no source of papers. Choose one of {', '.join(self.names)}.")
        wanted = max(limit, MAX_CANDIDATES) if is_newest_first else limit
        answer = await self._chain.ask(query, limit=wanted, only=source)
        hits = sort_newest_first(answer.hits) if is_newest_first else answer.hits
        return replace(answer, hits=hits[:limit])
