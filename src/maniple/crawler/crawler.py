"""The crawler: fetches pages and reduces them to their readable content."""

import asyncio
import logging
import os
import re
from collections.abc import Awaitable, Callable
from typing import Protocol

from cachetools import TTLCache

from maniple.config.web_settings import FetchSettings
from maniple.crawler.article import Article, mark_obstacle, read_article
from maniple.crawler.document import HTML, FetchedDocument
from maniple.crawler.fetcher import Fetcher
from maniple.crawler.jina import JinaReader
from maniple.crawler.site_probe import SiteProbe
from maniple.egress import AddressGuard, PermanentFetchError
from maniple.errors import FetchError, ToolFailure
from maniple.reading.fork_server import ForkServer
from maniple.reading.pictures import identify_picture

_MAX_CONCURRENT_RENDERS = 2
_PASSABLE = ("bot check", "cookie wall", "empty shell")
"""Walls behind which a browser may find the page."""
_log = logging.getLogger(__name__)


class PageRenderer(Protocol):
    """Opens a page in a browser."""

    async def __call__(self, url: str, /) -> FetchedDocument:
        """Return the page at `url` as HTML after its scripts ran.

        Raises `ToolFailure` if it cannot be opened.
        """
        ...


class Crawler:
    """Reads pages for the researcher: directly, in a browser, or through Jina's reader.

    `render` opens pages in a browser if they are empty without scripts; without it they are refused. Large
    pages and other documents are read in processes of `fork_server`, which its owner closes. Without one, the
    crawler makes its own.

    Raises:
        ConfigError: an entry of `fetch.allow_private` is not a network.
    """

    def __init__(
        self,
        settings: FetchSettings,
        render: PageRenderer | None = None,
        fork_server: ForkServer | None = None,
    ) -> None:
        self._settings = settings
        self._fork_server = fork_server or ForkServer()
        self._fetcher = Fetcher(settings, AddressGuard(settings), loaders=self._fork_server.loaders)
        self._reader = JinaReader(settings)
        self._render = render
        self._probe = SiteProbe(self._read_unjudged) if settings.probe_sites else None
        self._pictures = PagePictures(self._fetcher.fetch)
        self._renders = asyncio.Semaphore(_MAX_CONCURRENT_RENDERS)
        # Reading is CPU-bound: more concurrent readings would only block the threads that resolve names.
        self._readings = asyncio.Semaphore(os.cpu_count() or 1)

    async def crawl(self, url: str, section: str = "") -> Article:
        """Return the readable part of the page at `url` as Markdown.

        `section` is a number or a heading of the outline of a long page; the article starts there.

        Raises:
            FetchError: the page cannot be fetched or has no text, or the section does not exist.
        """
        if self._reader_is_first and await self._reader.is_allowed(url):
            try:
                return await self._crawl_through_jina(url, section)
            except PermanentFetchError:
                raise
            except FetchError as error:
                if self._settings.jina == "always":
                    raise
                _log.warning("%s The page is fetched directly.", error)
        if self._settings.jina == "fallback":
            return await self._crawl_with_fallback(url, section)
        return await self._crawl_directly(url, section)

    async def _crawl_with_fallback(self, url: str, section: str) -> Article:
        try:
            article = await self._crawl_directly(url, section)
        except PermanentFetchError:
            raise
        except FetchError as error:
            if not await self._reader.is_allowed(url):
                raise
            _log.info("%s It is read through Jina's reader.", error)
            return await self._crawl_through_jina(url, section)
        return await self._read_past_wall(article, url, section) if article.kind in _PASSABLE else article

    async def _read_past_wall(self, wall: Article, url: str, section: str) -> Article:
        """Return the page as Jina's reader sees it, or `wall` if that has no content, either."""
        if not await self._reader.is_allowed(url):
            return wall
        try:
            article = await self._crawl_through_jina(url, section)
        except FetchError as error:
            _log.info("%s The page shows a wall (%s).", error, wall.kind)
            return wall
        return article if article.is_source else wall

    async def picture(self, url: str) -> bytes:
        """Return the picture at `url` for a model with vision: PNG, JPEG, GIF or WebP, 200 to 8,000 pixels a
        side.

        Returns b"" if it cannot be fetched or is no such picture, and if pages are fetched only through Jina.
        """
        return b"" if self._settings.jina == "always" else await self._pictures.read(url)

    async def fetch_picture(self, url: str) -> bytes:
        """Return the picture at `url`, of a format that models accept.

        Raises:
            FetchError: it cannot be fetched or is no such picture, or pages are fetched only through Jina.
        """
        if self._settings.jina == "always":
            raise FetchError(f"{url} is not fetched: fetch.jina is always, and Jina gives no pictures.")
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                document = await self._fetcher.fetch(url)
        except TimeoutError as error:
            raise FetchError(f"{url} was not loaded within {_TIMEOUT_SECONDS} seconds.") from error
        if identify_picture(document.body) is None:
            kind = document.media_type or "of an unknown type"
            raise FetchError(f"{url} is {kind}, and no picture (PNG, JPEG, GIF or WebP).")
        return document.body

    @property
    def _reader_is_first(self) -> bool:
        mode = self._settings.jina
        return mode == "always" or (mode == "auto" and self._settings.jina_api_key is not None)

    async def _crawl_through_jina(self, url: str, section: str) -> Article:
        await self._fetcher.require_allowed(url)
        return await self._read(await self._reader.fetch(url), section)

    async def _crawl_directly(self, url: str, section: str) -> Article:
        document = await self._fetcher.fetch(url)
        article = await self._read_or_render(document, section)
        if self._probe is None or document.media_type not in HTML:
            return article
        is_catch_all = await self._probe.is_catch_all(url, article)
        return mark_obstacle(article, "catch-all page") if is_catch_all else article

    async def _read_unjudged(self, url: str) -> Article:
        return await self._read(await self._fetcher.fetch(url), "")

    async def _read_or_render(self, document: FetchedDocument, section: str) -> Article:
        try:
            article = await self._read(document, section)
        except PermanentFetchError:
            raise
        except FetchError:
            if self._render is None or not may_need_javascript(document, None):
                raise
            return await self._crawl_rendered(self._render, document.url, section)
        is_wall = article.kind in _PASSABLE
        if self._render is not None and (is_wall or may_need_javascript(document, article)):
            try:
                rendered = await self._crawl_rendered(self._render, document.url, section)
                return max(rendered, article, key=lambda one: (one.is_source, count_prose(one)))
            except FetchError as error:
                _log.info("%s The text of the page without scripts is used.", error)
        return article

    async def _crawl_rendered(self, render: PageRenderer, url: str, section: str) -> Article:
        try:
            async with self._renders, asyncio.timeout(self._settings.timeout_seconds):
                document = await render(url)
        except TimeoutError as error:
            raise FetchError(f"{url} needs JavaScript and took too long; use another source.") from error
        except ToolFailure as error:
            raise FetchError(f"{url} needs JavaScript, and the browser failed: {error}") from error
        return await self._read(document, section)

    async def _read(self, document: FetchedDocument, section: str) -> Article:
        try:
            async with self._readings, asyncio.timeout(self._settings.timeout_seconds):
                return await read_article(document, self._settings.max_characters, self._fork_server, section)
        except TimeoutError as error:
            raise FetchError(f"{document.url} took too long to be read; use another source.") from error


_SCRIPT = re.compile(rb"<script\b", re.IGNORECASE)
# The root elements of frameworks, with at most one line of content.
_EMPTY_ROOT = re.compile(
    rb"""\bid\s{0,9}=\s{0,9}["']?(?:root|app|__next|__nuxt)(?:>|["'\s][^<>]{0,300}>)[^<>]{0,300}<(?:/|script\b)""",
    re.IGNORECASE,
)
_ROOT_WITHIN_BYTES = 200_000
_NOTICE = re.compile(
    r"java\s?script|^\W*loading\b|\bloading\W*$|please wait|just a moment|加载中|正在加载|请稍候|読み込み中",
    re.IGNORECASE,
)
_MAX_NOTICE_LENGTH = 200
_LINK = re.compile(r"!?\[[^\[\]]{0,300}\]\([^()]{0,2000}\)")
# A page with more prose has content, even if it mentions scripts.
_MIN_PROSE_CHARACTERS = 400
_SHORT_CHARACTERS = 10_000


def may_need_javascript(document: FetchedDocument, article: Article | None) -> bool:
    """Return whether scripts may add content to `article`; None means that no text was found."""
    if document.media_type not in HTML or not _SCRIPT.search(document.body):
        return False
    if article is None:
        return True
    characters = count_prose(article)
    if characters >= _MIN_PROSE_CHARACTERS:
        return False
    is_notice = any(_is_notice(line) for line in article.markdown.splitlines())
    return characters == 0 or is_notice or bool(_EMPTY_ROOT.search(document.body[:_ROOT_WITHIN_BYTES]))


def count_prose(article: Article) -> int:
    """Return the length of an article's text without title, links and notices about loading or scripts."""
    text = article.markdown
    if len(text) >= _SHORT_CHARACTERS:
        return len(text)
    lines = [_LINK.sub("", line).strip("#*- ") for line in text.splitlines()]
    return sum(len(line) for line in lines if line != article.title and not _is_notice(line))


def _is_notice(line: str) -> bool:
    return len(line) < _MAX_NOTICE_LENGTH and bool(_NOTICE.search(line))


MAX_PICTURE_BYTES = 3_750_000
"""The limit of one picture: in Base64 it has 5 MB, the limit of providers."""
MIN_PIXELS = 200
"""The minimum of each side; smaller pictures are icons, avatars or counters."""
MAX_PIXELS = 8_000
"""The maximum of each side; providers reject larger pictures."""
_TIMEOUT_SECONDS = 10
_CACHE_BYTES = 30_000_000
_CACHE_SECONDS = 600
_OVERHEAD_BYTES = 1_000


class PagePictures:
    """Fetches pictures like pages, and caches them for ten minutes, because a model sees them again."""

    def __init__(self, fetch: Callable[[str], Awaitable[FetchedDocument]]) -> None:
        self._fetch = fetch
        self._cache: TTLCache[str, bytes] = TTLCache(_CACHE_BYTES, _CACHE_SECONDS, getsizeof=_size)

    async def read(self, url: str) -> bytes:
        """Return the picture at `url`; b"" if it cannot be fetched, or has an unsupported size or format."""
        picture = self._cache.get(url)
        if picture is None:
            picture = self._cache[url] = await self._fetch_picture(url)
        return picture

    async def _fetch_picture(self, url: str) -> bytes:
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                document = await self._fetch(url)
        except (FetchError, TimeoutError) as error:
            _log.info("%s No picture is shown.", error)
            return b""
        return document.body if _is_usable(document.body) else b""


def _is_usable(body: bytes) -> bool:
    picture = identify_picture(body)
    if picture is None or len(body) > MAX_PICTURE_BYTES:
        return False
    sides = (picture.width, picture.height)
    return min(sides) >= MIN_PIXELS and max(sides) <= MAX_PIXELS


def _size(body: bytes) -> int:
    return len(body) + _OVERHEAD_BYTES
