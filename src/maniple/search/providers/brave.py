"""Brave Search: https://api-dashboard.search.brave.com. Needs an API key."""

from maniple.config.web_settings import SearchSettings
from maniple.search.provider import HttpEndpoint, ProviderSpec, SearchHit, normalize_query, parse_hits

BASE_URL = "https://api.search.brave.com"
_QUERY_CHARACTERS = 400
_QUERY_WORDS = 50
_REMEDIES = {
    401: "Correct BRAVE_API_KEY in .env.",
    403: "Brave's plan does not cover this search; see its dashboard.",
    # The status for an unknown key.
    422: "Correct BRAVE_API_KEY in .env.",
}


class BraveSearch:
    """Searches with Brave."""

    def __init__(self, settings: SearchSettings, base_url: str = BASE_URL) -> None:
        self._key = settings.brave_api_key
        self._url = f"{base_url}/res/v1/web/search"
        self._endpoint = HttpEndpoint("Brave", settings.timeout_seconds, _REMEDIES)

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`."""
        text = " ".join(normalize_query(query, _QUERY_CHARACTERS).split()[:_QUERY_WORDS])
        answer = await self._endpoint.get_json(
            self._url,
            {"q": text, "count": str(limit), "text_decorations": "false", "result_filter": "web"},
            {
                "Accept": "application/json",
                "X-Subscription-Token": self._key.get_secret_value() if self._key else "",
            },
        )
        web = answer.get("web")
        results = web.get("results") if isinstance(web, dict) else []
        if not isinstance(results, list):
            raise self._endpoint.malformed_response()
        return parse_hits(results, content="description", published="page_age")[:limit]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()


PROVIDER = ProviderSpec(
    name="brave",
    create=lambda settings, context: BraveSearch(settings),
    requires={"brave_api_key": "BRAVE_API_KEY"},
    servers=lambda settings: [BASE_URL],
    rank=30,
)
