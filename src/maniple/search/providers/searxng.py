"""SearXNG, a self-hosted metasearch engine: https://docs.searxng.org."""

from maniple.config.web_settings import SearchSettings
from maniple.search.provider import (
    HttpEndpoint,
    ProviderFailure,
    ProviderSpec,
    SearchHit,
    normalize_query,
    parse_hits,
)

_QUERY_CHARACTERS = 1_000
_REMEDIES = {
    200: "Check SEARXNG_URL.",
    403: "Add json to search.formats in its settings.yml.",
    404: "Check SEARXNG_URL.",
}


class SearxngSearch:
    """Searches with the instance at `search.searxng_url`.

    The operator sets that address: it may be private, and it is not checked as the addresses of pages are.
    """

    def __init__(self, settings: SearchSettings) -> None:
        self._url = f"{(settings.searxng_url or '').rstrip('/')}/search"
        self._endpoint = HttpEndpoint("SearXNG", settings.timeout_seconds, _REMEDIES)

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`."""
        params = {"q": normalize_query(query, _QUERY_CHARACTERS), "format": "json", "categories": "general"}
        answer = await self._endpoint.get_json(self._url, params)
        results = answer.get("results")
        if not isinstance(results, list):
            raise self._endpoint.malformed_response()
        if not results and (silent := answer.get("unresponsive_engines")):
            raise ProviderFailure(f"None of SearXNG's engines answered: {str(silent)[:200]}")
        # SearXNG's score has no upper bound, so it is left out.
        return parse_hits(results, content="content", published="publishedDate")[:limit]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()


PROVIDER = ProviderSpec(
    name="searxng",
    create=lambda settings, context: SearxngSearch(settings),
    requires={"searxng_url": "SEARXNG_URL"},
    rank=40,
    servers=lambda settings: [settings.searxng_url or ""],
)
