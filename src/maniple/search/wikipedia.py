"""Wikipedia (https://www.mediawiki.org/wiki/API:Search), in the language of the query; needs no key."""

from collections.abc import Callable
from typing import Any

from maniple.config.search_settings import SearchSettings
from maniple.search.endpoint import Endpoint, asked_for
from maniple.search.hits import hits_of
from maniple.search.language import language_of
from maniple.search.provider import ProviderFailure, RateLimited, SearchHit

BASE_URL = "https://{language}.wikipedia.org"
_QUERY_CHARACTERS = 300
_EXTRACT_CHARACTERS = 1_000


class WikipediaSearch:
    """Searches Wikipedia; `locale` tells the language of the conversation, such as `de-DE` or ""."""

    def __init__(
        self, settings: SearchSettings, locale: Callable[[], str] = str, base_url: str = BASE_URL
    ) -> None:
        self._fallback = settings.language
        self._locale = locale
        self._base_url = base_url
        self._endpoint = Endpoint("Wikipedia", settings.timeout_seconds)

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`; the extracts are the articles' first paragraphs."""
        words = asked_for(query, _QUERY_CHARACTERS)
        language = language_of(words, self._locale(), self._fallback)
        answer = await self._endpoint.json(
            f"{self._base_url.format(language=language)}/w/api.php",
            {
                "action": "query",
                "format": "json",
                "formatversion": "2",
                "generator": "search",
                "gsrsearch": words,
                "gsrlimit": str(limit),
                "prop": "extracts|info",
                "inprop": "url",
                "exintro": "1",
                "explaintext": "1",
                "exchars": str(_EXTRACT_CHARACTERS),
                "exlimit": "max",
            },
        )
        return hits_of(self._pages(answer), url="canonicalurl", content="extract")[:limit]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    def _pages(self, answer: dict[str, Any]) -> list[dict[str, Any]]:
        if isinstance(error := answer.get("error"), dict):
            code = str(error.get("code"))[:100]
            if code in ("ratelimited", "maxlag"):
                raise RateLimited(f"Wikipedia wants fewer searches ({code}).")
            raise ProviderFailure(f"Wikipedia did not understand the query ({code}).", rest_seconds=0)
        found = answer.get("query", {})  # left out when there is no page
        pages = found.get("pages", []) if isinstance(found, dict) else None
        if not isinstance(pages, list):
            raise self._endpoint.garbled()
        # They come by number of page, with their rank beside.
        return sorted((page for page in pages if isinstance(page, dict)), key=_rank)


def _rank(page: dict[str, Any]) -> float:
    rank = page.get("index")
    return rank if isinstance(rank, int | float) else float("inf")
