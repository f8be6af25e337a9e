"""From what an engine sent to results that can be handed on."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from html import unescape
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from maniple.evidence.addresses import comparable_url
from maniple.search.provider import SearchHit
from maniple.text import whole

TITLE_CHARACTERS = 300
CONTENT_CHARACTERS = 2_000
URL_CHARACTERS = 2_048
MAX_RESULTS = 100
"""Looked at; more than 20 are never asked for."""

_READ_CHARACTERS = 10 * CONTENT_CHARACTERS
_HIGHLIGHT = re.compile("</?(?:b|strong|em|i|mark)>", re.IGNORECASE)
"""How engines mark the words that were looked for."""
_SCHEMES = ("http", "https")


def hits_of(
    results: Iterable[Any], *, content: str, title: str = "title", url: str = "url", score: str = ""
) -> list[SearchHit]:
    """Read objects of JSON, whose keys are named; whatever has no web address is left out."""
    return list(_read(results, title, url, content, score))


def _read(results: Iterable[Any], title: str, url: str, content: str, score: str) -> Iterator[SearchHit]:
    for result in islice(results, MAX_RESULTS):
        address = result.get(url) if isinstance(result, dict) else None
        if not isinstance(address, str) or not is_web_address(address):
            continue
        points = result.get(score)
        yield hit(
            _unmarked(result.get(title)),
            address,
            _unmarked(result.get(content)),
            points if isinstance(points, int | float) else None,
        )


def _unmarked(text: Any) -> Any:
    """Return what an engine wrote in HTML as text; code that a page shows is escaped there, and stays."""
    return unescape(_HIGHLIGHT.sub("", text[:_READ_CHARACTERS])) if isinstance(text, str) else text


def hit(title: Any, url: str, content: Any, score: float | None = None) -> SearchHit:
    """Return a result of bounded size, without halves of characters."""
    named = " ".join(title.split()) if isinstance(title, str) else ""
    extract = content.strip() if isinstance(content, str) else ""
    return SearchHit(
        whole(_cut(named or url, TITLE_CHARACTERS)), url, whole(_cut(extract, CONTENT_CHARACTERS)), score
    )


def is_web_address(url: str) -> bool:
    """Say whether `url` can be opened in a browser."""
    if len(url) > URL_CHARACTERS or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in _SCHEMES and bool(parts.hostname)
    except ValueError:
        return False


def unique(hits: Iterable[SearchHit]) -> list[SearchHit]:
    """Return each page once, where it came first."""
    first: dict[str, SearchHit] = {}
    for one in hits:
        first.setdefault(comparable_url(one.url), one)
    return list(first.values())


def told_by(hits: Iterable[SearchHit], source: str) -> list[SearchHit]:
    """Return the results with who found them."""
    return [replace(one, source=source) for one in hits]


def as_told(hit: SearchHit) -> dict[str, Any]:
    """Return the hit as the tool tells it: what is not known is left out."""
    return {
        name: value for name, value in asdict(hit).items() if name == "content" or value not in (None, "")
    }


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
