"""Tavily (https://docs.tavily.com), a search engine for agents; needs an API key."""

import asyncio
import importlib
from typing import Any

import httpx

from maniple.config.settings import SearchSettings
from maniple.errors import SearchError
from maniple.search.provider import SearchHit


class TavilySearch:
    """Searches with Tavily; `aclose` ends its connections."""

    def __init__(self, settings: SearchSettings) -> None:
        self._settings = settings
        self._client: Any = None

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`."""
        if not query.strip():
            raise SearchError("The search query is empty; say what to look for.")
        tavily = await asyncio.to_thread(importlib.import_module, "tavily")
        timeout_seconds = self._settings.timeout_seconds
        try:
            async with asyncio.timeout(timeout_seconds):
                answer = await self._connected(tavily).search(
                    query, max_results=limit, timeout=timeout_seconds
                )
        except (*_sentences(tavily),) as error:
            raise _search_error(error, tavily) from error
        return _hits(answer)[:limit]

    async def aclose(self) -> None:
        """Close the connections; the next search opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _connected(self, tavily: Any) -> Any:
        if self._client is None:
            key = self._settings.tavily_api_key
            self._client = tavily.AsyncTavilyClient(
                api_key=key.get_secret_value() if key else None, api_base_url=self._settings.tavily_base_url
            )
        return self._client


def _sentences(tavily: Any) -> dict[type[Exception], str]:
    errors = tavily.errors
    garbled = "What answered is not Tavily's JSON; check search.tavily_base_url."
    slow = "Tavily took too long to answer; search again or go on without."
    return {
        errors.InvalidAPIKeyError: "Tavily refused the API key; correct TAVILY_API_KEY in .env.",
        errors.UsageLimitExceededError: "Tavily wants fewer searches; wait or go on without. {error}",
        errors.ForbiddenError: "Tavily's plan does not cover this search; raise its limit. {error}",
        errors.BadRequestError: "Tavily did not understand the query; shorten or reword it. {error}",
        errors.TimeoutError: slow,
        TimeoutError: slow,
        httpx.HTTPStatusError: "Tavily failed: {error}. Search again later or go on without.",
        httpx.HTTPError: "Tavily could not be reached: {error}. Check network and search.tavily_base_url.",
        ValueError: garbled,
        # Its client takes any JSON for an object.
        AttributeError: garbled,
    }


def _search_error(error: Exception, tavily: Any) -> SearchError:
    sentence = next(text for kind, text in _sentences(tavily).items() if isinstance(error, kind))
    return SearchError(sentence.format(error=str(error).partition("\n")[0]).strip())


def _hits(answer: Any) -> list[SearchHit]:
    results = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(results, list):
        raise SearchError("Tavily sent an answer without results; search again or go on without.")
    return [
        SearchHit(
            title=str(result.get("title") or result["url"]),
            url=result["url"],
            content=str(result.get("content") or ""),
            score=score if isinstance(score := result.get("score"), int | float) else None,
        )
        for result in results
        if isinstance(result, dict) and str(result.get("url")).startswith(("http://", "https://"))
    ]
