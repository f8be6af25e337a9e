"""Searching the web and a folder of documents."""

from maniple.search.chain import Answer, SearchChain
from maniple.search.engines import Surroundings, lacking, open_chain, open_search
from maniple.search.folder import FolderSearch
from maniple.search.provider import SearchHit, SearchProvider
from maniple.types import Unavailable

__all__ = [
    "Answer",
    "FolderSearch",
    "SearchChain",
    "SearchHit",
    "SearchProvider",
    "Surroundings",
    "Unavailable",
    "lacking",
    "open_chain",
    "open_search",
]
