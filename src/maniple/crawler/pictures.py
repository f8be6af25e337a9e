"""The pictures of pages, for models that see."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from cachetools import TTLCache

from maniple.crawler.article import Document
from maniple.errors import FetchError
from maniple.reading.pictures import picture_of

MAX_BYTES = 3_750_000
"""Of one picture: written as text it is 5 MB, which is as much as providers take."""
LEAST_PIXELS = 200
"""On each side: what is smaller is an icon, an avatar or a counter."""
MOST_PIXELS = 8_000
"""On each side: providers refuse more."""
_TIMEOUT_SECONDS = 10
_KEPT_BYTES = 30_000_000
_KEPT_SECONDS = 600
_OVERHEAD_BYTES = 1_000
_log = logging.getLogger(__name__)


class PagePictures:
    """Fetches pictures as pages are fetched, and keeps them for ten minutes: a model is shown them again."""

    def __init__(self, fetch: Callable[[str], Awaitable[Document]]) -> None:
        self._fetch = fetch
        self._kept: TTLCache[str, bytes] = TTLCache(_KEPT_BYTES, _KEPT_SECONDS, getsizeof=_size)

    async def read(self, url: str) -> bytes:
        """The picture at `url`; nothing for one that cannot be had, is small or large, or is none."""
        kept = self._kept.get(url)
        if kept is None:
            kept = self._kept[url] = await self._fetched(url)
        return kept

    async def _fetched(self, url: str) -> bytes:
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                document = await self._fetch(url)
        except (FetchError, TimeoutError) as error:
            _log.info("%s No picture is shown.", error)
            return b""
        return document.body if _is_shown(document.body) else b""


def _is_shown(body: bytes) -> bool:
    picture = picture_of(body)
    if picture is None or len(body) > MAX_BYTES:
        return False
    sides = (picture.width, picture.height)
    return min(sides) >= LEAST_PIXELS and max(sides) <= MOST_PIXELS


def _size(body: bytes) -> int:
    return len(body) + _OVERHEAD_BYTES
