"""Web search."""

from maniple.search.engines import open_search
from maniple.search.provider import SearchHit, SearchProvider
from maniple.search.tavily import TavilySearch
from maniple.types import Unavailable

__all__ = ["SearchHit", "SearchProvider", "TavilySearch", "Unavailable", "open_search"]
