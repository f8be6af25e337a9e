"""Pages that were read before, to be used again only when their sites say that they are unchanged."""

from collections.abc import Mapping
from dataclasses import dataclass

import httpx
from cachetools import LRUCache

from maniple.crawler.article import Document

_OVERHEAD_BYTES = 1_000
_VALIDATORS = {"If-None-Match": "etag", "If-Modified-Since": "last-modified"}


@dataclass(frozen=True, slots=True)
class Page:
    """A document and the headers of a request that asks whether it has changed."""

    document: Document
    validators: Mapping[str, str]


class Pages:
    """The pages used last, up to a number of bytes.

    Nothing is given out without a request: each use is checked by the guard and answered by the site, so
    that a kept page is no way around either. A page that depends on a cookie is not kept.
    """

    def __init__(self, max_bytes: int) -> None:
        self._kept: LRUCache[str, Page] = LRUCache(max_bytes, _size)

    def question(self, request: httpx.Request) -> Page | None:
        """Make `request` ask whether the page has changed; what is kept of it, to be used if it has not."""
        for name in _VALIDATORS:
            request.headers.pop(name, None)  # of the page that redirected here
        page = None if "cookie" in request.headers else self._kept.get(_key(request))
        request.headers.update(page.validators if page else {})
        return page

    def keep(self, request: httpx.Request, response: httpx.Response, document: Document) -> None:
        """Keep `document` if its site says how to ask for changes, and nothing against it."""
        headers = response.headers
        forbidden = "no-store" in headers.get("cache-control", "").lower() or "*" in headers.get("vary", "")
        page = Page(document, _validators(headers))
        if forbidden or "cookie" in request.headers or not page.validators:
            self._kept.pop(_key(request), None)
        elif _size(page) <= self._kept.maxsize:
            self._kept[_key(request)] = page


def _size(page: Page) -> int:
    return len(page.document.body) + _OVERHEAD_BYTES


def _key(request: httpx.Request) -> str:
    return str(request.url.copy_with(fragment=None))


def _validators(headers: httpx.Headers) -> dict[str, str]:
    return {name: headers[source] for name, source in _VALIDATORS.items() if headers.get(source)}
