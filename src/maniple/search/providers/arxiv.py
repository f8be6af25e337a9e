"""arXiv, scientific preprints: https://info.arxiv.org/help/api/user-manual.html. Needs no key."""

import asyncio
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from maniple.config.web_settings import SearchSettings
from maniple.errors import SearchError
from maniple.search.provider import (
    MAX_RESULTS,
    HttpEndpoint,
    ProviderFailure,
    ProviderSpec,
    RateLimited,
    SearchHit,
    is_web_address,
    make_hit,
    normalize_query,
)

if TYPE_CHECKING:
    from lxml.etree import _Element

BASE_URL = "https://export.arxiv.org"
_QUERY_CHARACTERS = 300
_ATOM = {"a": "http://www.w3.org/2005/Atom"}
# The terms of use allow one request every three seconds, over one connection.
PAUSE_SECONDS = 3.0
_MAX_WAITING = 3
_WORDS = re.compile(r"[^\W_]+")


class ArxivSearch:
    """Searches titles, abstracts and authors."""

    def __init__(
        self, settings: SearchSettings, base_url: str = BASE_URL, pause_seconds: float = PAUSE_SECONDS
    ) -> None:
        self._url = f"{base_url}/api/query"
        self._pause_seconds = pause_seconds
        self._endpoint = HttpEndpoint("arXiv", settings.timeout_seconds)
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._free_at = 0.0

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`. Every word must occur: arXiv ranks alternatives badly."""
        words = _WORDS.findall(normalize_query(query, _QUERY_CHARACTERS))
        if not words:
            raise SearchError("The search query has no words; say what to look for.")
        asked = " AND ".join(f"all:{word}" for word in words[:20])
        params = {"search_query": asked, "start": "0", "max_results": str(limit), "sortBy": "relevance"}
        if self._waiting >= _MAX_WAITING:
            message = f"arXiv allows one request every {self._pause_seconds:g} s, and others wait already."
            raise RateLimited(message, cooldown_seconds=self._pause_seconds)
        self._waiting += 1
        try:
            body = await self._get_in_turn(params)
        finally:
            self._waiting -= 1
        return self._parse_feed(body)[:limit]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    async def _get_in_turn(self, params: Mapping[str, str]) -> bytes:
        async with self._turn:
            await asyncio.sleep(max(self._free_at - time.monotonic(), 0))
            try:
                return await self._endpoint.get(self._url, params)
            finally:
                self._free_at = time.monotonic() + self._pause_seconds

    def _parse_feed(self, body: bytes) -> list[SearchHit]:
        from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - it is compiled

        # Entities of an untrusted document could read local files or expand without limit.
        parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
        try:
            feed = etree.fromstring(body, parser)
        except etree.XMLSyntaxError as error:
            raise self._endpoint.malformed_response() from error
        if feed.tag != f"{{{_ATOM['a']}}}feed":
            raise self._endpoint.malformed_response()
        entries = feed.findall("a:entry", _ATOM)[:MAX_RESULTS]
        if len(entries) == 1 and "/api/errors" in _text(entries[0], "id"):
            reason = _text(entries[0], "summary")[:200]
            raise ProviderFailure(f"arXiv rejected the query: {reason}", cooldown_seconds=0)
        return [_parse_entry(entry) for entry in entries if is_web_address(_text(entry, "id"))]


def _parse_entry(entry: "_Element") -> SearchHit:
    # The page of the abstract; ids are written with http.
    url = _text(entry, "id").replace("http://arxiv.org/", "https://arxiv.org/", 1)
    authors = [" ".join((one.text or "").split()) for one in entry.findall("a:author/a:name", _ATOM)[:5]]
    day = _text(entry, "published")[:10]
    about = ", ".join(filter(None, (*authors, day)))
    return make_hit(
        _text(entry, "title"),
        url,
        f"{about}. {_text(entry, 'summary')}" if about else _text(entry, "summary"),
    )


def _text(entry: "_Element", name: str) -> str:
    return " ".join((entry.findtext(f"a:{name}", "", _ATOM) or "").split())


PROVIDER = ProviderSpec(
    name="arxiv",
    create=lambda settings, context: ArxivSearch(settings),
    servers=lambda settings: [BASE_URL],
)
