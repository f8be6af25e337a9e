"""arXiv (https://info.arxiv.org/help/api/user-manual.html), preprints of the sciences; needs no key."""

import asyncio
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from maniple.config.search_settings import SearchSettings
from maniple.errors import SearchError
from maniple.search.endpoint import Endpoint, asked_for
from maniple.search.hits import MAX_RESULTS, hit, is_web_address
from maniple.search.provider import ProviderFailure, RateLimited, SearchHit

if TYPE_CHECKING:
    from lxml.etree import _Element

BASE_URL = "https://export.arxiv.org"
_QUERY_CHARACTERS = 300
_ATOM = {"a": "http://www.w3.org/2005/Atom"}
# Its terms of use: one request in three seconds, over one connection.
PAUSE_SECONDS = 3.0
_MOST_WAITING = 3
_WORDS = re.compile(r"[^\W_]+")


class ArxivSearch:
    """Searches titles, abstracts and authors; `aclose` ends its connections."""

    def __init__(
        self, settings: SearchSettings, base_url: str = BASE_URL, pause_seconds: float = PAUSE_SECONDS
    ) -> None:
        self._url = f"{base_url}/api/query"
        self._pause_seconds = pause_seconds
        self._endpoint = Endpoint("arXiv", settings.timeout_seconds)
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._free_at = 0.0

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`; every word must occur, as nobody else's ranking is any good here."""
        words = _WORDS.findall(asked_for(query, _QUERY_CHARACTERS))
        if not words:
            raise SearchError("The search query has no words; say what to look for.")
        asked = " AND ".join(f"all:{word}" for word in words[:20])
        params = {"search_query": asked, "start": "0", "max_results": str(limit), "sortBy": "relevance"}
        if self._waiting >= _MOST_WAITING:
            words = f"arXiv is asked once in {self._pause_seconds:g} s, and others wait for it."
            raise RateLimited(words, rest_seconds=self._pause_seconds)
        self._waiting += 1
        try:
            body = await self._in_turn(params)
        finally:
            self._waiting -= 1
        return self._hits(body)[:limit]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    async def _in_turn(self, params: Mapping[str, str]) -> bytes:
        async with self._turn:
            await asyncio.sleep(max(self._free_at - time.monotonic(), 0))
            try:
                return await self._endpoint.get(self._url, params)
            finally:
                self._free_at = time.monotonic() + self._pause_seconds

    def _hits(self, body: bytes) -> list[SearchHit]:
        from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - it is compiled

        # Entities of a stranger's document may be files of ours, or grow without end.
        parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
        try:
            feed = etree.fromstring(body, parser)
        except etree.XMLSyntaxError as error:
            raise self._endpoint.garbled() from error
        if feed.tag != f"{{{_ATOM['a']}}}feed":
            raise self._endpoint.garbled()
        entries = feed.findall("a:entry", _ATOM)[:MAX_RESULTS]
        if len(entries) == 1 and "/api/errors" in _text(entries[0], "id"):
            words = _text(entries[0], "summary")[:200]
            raise ProviderFailure(f"arXiv did not understand the query: {words}", rest_seconds=0)
        return [_paper(entry) for entry in entries if is_web_address(_text(entry, "id"))]


def _paper(entry: "_Element") -> SearchHit:
    # The abstract's page; http is what its ids are written with.
    url = _text(entry, "id").replace("http://arxiv.org/", "https://arxiv.org/", 1)
    authors = [" ".join((one.text or "").split()) for one in entry.findall("a:author/a:name", _ATOM)[:5]]
    day = _text(entry, "published")[:10]
    about = ", ".join(filter(None, (*authors, day)))
    return hit(
        _text(entry, "title"),
        url,
        f"{about}. {_text(entry, 'summary')}" if about else _text(entry, "summary"),
    )


def _text(entry: "_Element", name: str) -> str:
    return " ".join((entry.findtext(f"a:{name}", "", _ATOM) or "").split())
