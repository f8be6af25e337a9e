"""Tavily (https://docs.tavily.com), a search engine for agents; needs an API key."""

import asyncio
import importlib
from typing import Any

import httpx

from maniple.config.search_settings import SearchSettings
from maniple.errors import SearchError
from maniple.search.endpoint import new_client, rest_asked_for
from maniple.search.hits import hits_of
from maniple.search.provider import ProviderFailure, RateLimited, SearchHit


class TavilySearch:
    """Searches with Tavily; `aclose` ends its connections."""

    def __init__(self, settings: SearchSettings) -> None:
        self._settings = settings
        self._http: httpx.AsyncClient | None = None
        self._client: Any = None

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`."""
        if not query.strip():
            raise SearchError("The search query is empty; say what to look for.")
        tavily = await asyncio.to_thread(importlib.import_module, "tavily")
        timeout_seconds = self._settings.timeout_seconds
        try:
            async with asyncio.timeout(timeout_seconds):
                client = await self._connected(tavily)
                answer = await client.search(query, max_results=limit, timeout=timeout_seconds)
        except (*_sentences(tavily),) as error:
            raise _failure(error, tavily) from error
        return _hits(answer)[:limit]

    async def aclose(self) -> None:
        """Close the connections; the next search opens new ones."""
        client, self._http, self._client = self._http, None, None
        if client is not None:
            await client.aclose()

    async def _connected(self, tavily: Any) -> Any:
        if self._client is None:
            # With a client of its own it would not tell how long it wants to be left alone.
            http = await asyncio.to_thread(
                new_client,
                base_url=self._settings.tavily_base_url,
                event_hooks={"response": [_heed_the_limit]},
            )
            self._http = self._http or http  # another search may have been faster
            key = self._settings.tavily_api_key
            self._client = tavily.AsyncTavilyClient(
                api_key=key.get_secret_value() if key else None, client=self._http
            )
        return self._client


async def _heed_the_limit(response: httpx.Response) -> None:
    rest = rest_asked_for(response.headers) if response.status_code == 429 else None
    if rest is not None:
        raise RateLimited(f"Tavily wants fewer searches: none for {rest:.0f} s.", rest_seconds=rest)


def _sentences(tavily: Any) -> dict[type[Exception], str]:
    errors = tavily.errors
    garbled = "What answered is not Tavily's JSON; check search.tavily_base_url."
    slow = "Tavily took too long to answer."
    return {
        errors.InvalidAPIKeyError: "Tavily refused the API key; correct TAVILY_API_KEY in .env.",
        errors.UsageLimitExceededError: "Tavily wants fewer searches. {error}",
        errors.ForbiddenError: "Tavily's plan does not cover this search; raise its limit. {error}",
        errors.BadRequestError: "Tavily did not understand the query; shorten or reword it. {error}",
        errors.TimeoutError: slow,
        TimeoutError: slow,
        httpx.HTTPStatusError: "Tavily failed: {error}.",
        httpx.HTTPError: "Tavily could not be reached: {error}. Check network and search.tavily_base_url.",
        ValueError: garbled,
        # Its client takes any JSON for an object.
        AttributeError: garbled,
    }


def _failure(error: Exception, tavily: Any) -> ProviderFailure:
    sentence = next(text for kind, text in _sentences(tavily).items() if isinstance(error, kind))
    words = sentence.format(error=str(error).partition("\n")[0]).strip()
    if isinstance(error, tavily.errors.UsageLimitExceededError):
        return RateLimited(words)
    if isinstance(error, tavily.errors.BadRequestError):
        return ProviderFailure(words, rest_seconds=0)
    return ProviderFailure(words)


def _hits(answer: Any) -> list[SearchHit]:
    results = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(results, list):
        raise ProviderFailure("Tavily sent an answer without results.")
    return hits_of(results, content="content", score="score")
