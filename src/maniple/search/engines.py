"""Which search engine answers."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from maniple.config.settings import SearchSettings
from maniple.search.provider import SearchProvider
from maniple.search.tavily import TavilySearch
from maniple.types import Unavailable


@asynccontextmanager
async def open_search(settings: SearchSettings) -> AsyncIterator[SearchProvider | Unavailable]:
    """The configured search engine, or why there is none. Nothing is connected before the first search."""
    if settings.tavily_api_key is None:
        yield Unavailable(
            "There is no TAVILY_API_KEY, so the team cannot search the web.",
            "set TAVILY_API_KEY in .env (https://app.tavily.com gives keys).",
        )
        return
    async with aclosing(TavilySearch(settings)) as provider:
        yield provider
