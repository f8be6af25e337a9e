"""Tavily, a search engine for agents: https://docs.tavily.com. Needs an API key."""

import asyncio
import importlib
from typing import Any

import httpx

from maniple.config.web_settings import SearchSettings
from maniple.egress.bounded_responses import ResponseRefused
from maniple.errors import ConfigError, SearchError
from maniple.search.provider import (
    ProviderFailure,
    ProviderSpec,
    RateLimited,
    SearchHit,
    cooldown_from_headers,
    new_http_client,
    parse_hits,
    rate_limited,
)


class TavilySearch:
    """Searches with Tavily."""

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
                client = await self._get_client(tavily)
                answer = await client.search(query, max_results=limit, timeout=timeout_seconds)
        except (*_error_messages(tavily),) as error:
            raise _to_failure(error, tavily) from error
        return _parse_answer(answer)[:limit]

    async def aclose(self) -> None:
        """Close the connections; the next search opens new ones."""
        client, self._http, self._client = self._http, None, None
        if client is not None:
            await client.aclose()

    async def _get_client(self, tavily: Any) -> Any:
        if self._client is None:
            # With its own HTTP client, Tavily's library hides the Retry-After header.
            http = await asyncio.to_thread(
                new_http_client,
                _raise_rate_limit,
                base_url=self._settings.tavily_base_url,
            )
            self._http = self._http or http  # a concurrent search may have been faster
            key = self._settings.tavily_api_key
            self._client = tavily.AsyncTavilyClient(
                api_key=key.get_secret_value() if key else None, client=self._http
            )
        return self._client


async def _raise_rate_limit(response: httpx.Response) -> None:
    seconds = cooldown_from_headers(response.headers) if response.status_code == 429 else None
    if seconds is not None:
        raise rate_limited("Tavily", 429, seconds)


def _error_messages(tavily: Any) -> dict[type[Exception], str]:
    errors = tavily.errors
    malformed = "The response is not Tavily's JSON; check search.tavily_base_url."
    slow = "Tavily did not answer in time."
    return {
        errors.InvalidAPIKeyError: "Tavily refused the API key; correct TAVILY_API_KEY in .env.",
        errors.UsageLimitExceededError: "Tavily returned 429 (rate limit). {error}",
        errors.ForbiddenError: "Tavily's plan does not cover this search; raise its limit. {error}",
        errors.BadRequestError: "Tavily rejected the query; shorten or reword it. {error}",
        errors.TimeoutError: slow,
        TimeoutError: slow,
        httpx.HTTPStatusError: "Tavily failed: {error}.",
        httpx.HTTPError: "Tavily could not be reached: {error}. Check network and search.tavily_base_url.",
        ResponseRefused: "Tavily {error}.",
        ConfigError: "Tavily could not be reached: {error}",
        ValueError: malformed,
        # Tavily's client takes any JSON for an object.
        AttributeError: malformed,
    }


def _to_failure(error: Exception, tavily: Any) -> ProviderFailure:
    message = next(text for kind, text in _error_messages(tavily).items() if isinstance(error, kind))
    message = message.format(error=str(error).partition("\n")[0]).strip()
    if isinstance(error, tavily.errors.UsageLimitExceededError):
        return RateLimited(message)
    if isinstance(error, tavily.errors.BadRequestError):
        return ProviderFailure(message, cooldown_seconds=0)
    return ProviderFailure(message)


def _parse_answer(answer: Any) -> list[SearchHit]:
    results = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(results, list):
        raise ProviderFailure("Tavily sent an answer without results.")
    return parse_hits(results, content="content", score="score")


PROVIDER = ProviderSpec(
    name="tavily",
    create=lambda settings, context: TavilySearch(settings),
    requires={"tavily_api_key": "TAVILY_API_KEY"},
    servers=lambda settings: [settings.tavily_base_url],
    rank=20,
)
