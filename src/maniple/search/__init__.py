"""Web search."""

from maniple.search.engines import open_search
from maniple.search.provider import SearchHit, SearchProvider, Unavailable
from maniple.search.tavily import TavilySearch

__all__ = ["SearchHit", "SearchProvider", "TavilySearch", "Unavailable", "open_search"]
