"""SearXNG (https://docs.searxng.org), a search engine over many that one runs oneself."""

from maniple.config.search_settings import SearchSettings
from maniple.search.endpoint import Endpoint, asked_for
from maniple.search.hits import hits_of
from maniple.search.provider import ProviderFailure, SearchHit

_QUERY_CHARACTERS = 1_000
_REMEDIES = {
    200: "Check SEARXNG_URL.",
    403: "Its settings.yml must name json under search.formats.",
    404: "Check SEARXNG_URL.",
}


class SearxngSearch:
    """Searches with the instance at `search.searxng_url`; `aclose` ends its connections.

    That address is the operator's own word: it may be private, and it is not guarded as pages are.
    """

    def __init__(self, settings: SearchSettings) -> None:
        self._url = f"{(settings.searxng_url or '').rstrip('/')}/search"
        self._endpoint = Endpoint("SearXNG", settings.timeout_seconds, _REMEDIES)

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`."""
        params = {"q": asked_for(query, _QUERY_CHARACTERS), "format": "json", "categories": "general"}
        answer = await self._endpoint.json(self._url, params)
        results = answer.get("results")
        if not isinstance(results, list):
            raise self._endpoint.garbled()
        if not results and (silent := answer.get("unresponsive_engines")):
            raise ProviderFailure(f"None of SearXNG's engines answered: {str(silent)[:200]}")
        # Its score has no upper bound, so it is not handed on.
        return hits_of(results, content="content")[:limit]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()
