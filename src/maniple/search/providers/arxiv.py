"""arXiv, scientific preprints: https://info.arxiv.org/help/api/user-manual.html. Needs no key."""

import re
from functools import partial
from typing import TYPE_CHECKING

from maniple.config.web_settings import SearchSettings
from maniple.errors import SearchError
from maniple.search.provider import (
    MAX_RESULTS,
    HttpEndpoint,
    ProviderFailure,
    ProviderSpec,
    SearchHit,
    normalize_query,
)
from maniple.search.scholarly import QUERY_CHARACTERS, PaperRecord, RequestQueue, list_hits, parse_xml

if TYPE_CHECKING:
    from lxml.etree import _Element

BASE_URL = "https://export.arxiv.org"
_ATOM = {"a": "http://www.w3.org/2005/Atom", "arxiv": "http://arxiv.org/schemas/atom"}
# The terms of use allow one request every three seconds, over one connection.
PAUSE_SECONDS = 3.0
_WORDS = re.compile(r"[^\W_]+")


class ArxivSearch:
    """Searches titles, abstracts and authors."""

    def __init__(
        self, settings: SearchSettings, base_url: str = BASE_URL, pause_seconds: float = PAUSE_SECONDS
    ) -> None:
        self._url = f"{base_url}/api/query"
        self._endpoint = HttpEndpoint("arXiv", settings.timeout_seconds)
        self._queue = RequestQueue("arXiv", pause_seconds)

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`. Every word must occur: arXiv ranks alternatives badly."""
        words = _WORDS.findall(normalize_query(query, QUERY_CHARACTERS))
        if not words:
            raise SearchError("The search query has no words; say what to look for.")
        asked = " AND ".join(f"all:{word}" for word in words[:20])
        params = {"search_query": asked, "start": "0", "max_results": str(limit), "sortBy": "relevance"}
        body = await self._queue.run(partial(self._endpoint.get, self._url, params))
        return self._parse_feed(body, limit)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    def _parse_feed(self, body: bytes, limit: int) -> list[SearchHit]:
        feed = parse_xml(body, f"{{{_ATOM['a']}}}feed", self._endpoint)
        entries = feed.findall("a:entry", _ATOM)[:MAX_RESULTS]
        if len(entries) == 1 and "/api/errors" in _text(entries[0], "a:id"):
            reason = _text(entries[0], "a:summary")[:200]
            raise ProviderFailure(f"arXiv rejected the query: {reason}", cooldown_seconds=0)
        return list_hits(map(_read_entry, entries), limit)


def _read_entry(entry: "_Element") -> PaperRecord:
    return PaperRecord(
        title=_text(entry, "a:title"),
        abstract=_text(entry, "a:summary"),
        authors=[one.text for one in entry.findall("a:author/a:name", _ATOM)],
        published=_text(entry, "a:published"),
        venue=_text(entry, "arxiv:journal_ref") or "arXiv",
        doi=_text(entry, "arxiv:doi"),
        # The page of the abstract.
        address=_secure(_text(entry, "a:id")),
        full_texts=[
            _secure(link.get("href") or "")
            for link in entry.findall("a:link", _ATOM)
            if link.get("type") == "application/pdf"
        ],
    )


def _secure(url: str) -> str:
    """Return an address of arXiv, which it writes with http, with https."""
    return url.replace("http://arxiv.org/", "https://arxiv.org/", 1)


def _text(entry: "_Element", path: str) -> str:
    return " ".join((entry.findtext(path, "", _ATOM) or "").split())


PROVIDER = ProviderSpec(
    name="arxiv",
    create=lambda settings, context: ArxivSearch(settings),
    is_scholarly=True,
    servers=lambda settings: [BASE_URL],
)
