"""Reading web pages: fetched with care, reduced to what a person would read."""

import asyncio
import logging
import os
import re
from collections.abc import Awaitable, Callable
from typing import Protocol

from cachetools import TTLCache

from maniple.config.web_settings import FetchSettings
from maniple.crawler.article import Article, read_article
from maniple.crawler.document import HTML, FetchedDocument
from maniple.crawler.fetcher import Fetcher
from maniple.crawler.jina import JinaReader
from maniple.egress import AddressGuard, PermanentFetchError
from maniple.errors import FetchError, ToolFailure
from maniple.reading.fork_server import ForkServer
from maniple.reading.pictures import identify_picture

_RENDERED_AT_ONCE = 2
_log = logging.getLogger(__name__)


class PageRenderer(Protocol):
    """Opens a page in a browser."""

    async def __call__(self, url: str, /) -> FetchedDocument:
        """The page at `url` as HTML after its scripts ran; raises `ToolFailure` when it cannot be had."""
        ...


class Crawler:
    """Reads pages for the researcher, in one of three ways: by itself, in a browser, through Jina's reader.

    `render` is the browser, for pages that are empty without scripts; without one they are refused. Large
    pages and other documents are read in the processes of `fork_server`, which its owner closes; without one,
    in those of a fork_server that ends with the crawler.

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
        self._fetcher = Fetcher(settings, AddressGuard(settings))
        self._reader = JinaReader(settings)
        self._render = render
        self._fork_server = fork_server or ForkServer()
        self._pictures = PagePictures(self._fetcher.fetch)
        self._renders = asyncio.Semaphore(_RENDERED_AT_ONCE)
        # Reading is work for a processor: more at once would only keep threads from looking up names.
        self._readings = asyncio.Semaphore(os.cpu_count() or 1)

    async def crawl(self, url: str, section: str = "") -> Article:
        """The readable part of the page at `url`, as Markdown.

        `section` is a number or a heading of the outline of a long one, from which on it is read.

        Raises:
            FetchError: the page cannot be fetched or holds no text, or no such section.
        """
        if self._reader_is_first and await self._reader.takes(url):
            try:
                return await self._second_hand(url, section)
            except PermanentFetchError:
                raise
            except FetchError as error:
                if self._settings.jina == "always":
                    raise
                _log.warning("%s The page is fetched directly.", error)
        try:
            return await self._directly(url, section)
        except PermanentFetchError:
            raise
        except FetchError as error:
            if self._settings.jina != "fallback" or not await self._reader.takes(url):
                raise
            _log.info("%s It is read through Jina's reader.", error)
        return await self._second_hand(url, section)

    async def picture(self, url: str) -> bytes:
        """The picture at `url` for a model that sees: PNG, JPEG, GIF or WebP of 200 to 8,000 pixels a side.

        Nothing for one that cannot be had or is none, and where pages are not to be fetched from here.
        """
        return b"" if self._settings.jina == "always" else await self._pictures.read(url)

    @property
    def _reader_is_first(self) -> bool:
        mode = self._settings.jina
        return mode == "always" or (mode == "auto" and self._settings.jina_api_key is not None)

    async def _second_hand(self, url: str, section: str) -> Article:
        await self._fetcher.require_allowed(url)
        return await self._read(await self._reader.fetch(url), section)

    async def _directly(self, url: str, section: str) -> Article:
        document = await self._fetcher.fetch(url)
        try:
            article = await self._read(document, section)
        except PermanentFetchError:
            raise
        except FetchError:
            if self._render is None or not may_need_javascript(document, None):
                raise
            return await self._rendered(self._render, document.url, section)
        if self._render is not None and may_need_javascript(document, article):
            try:
                rendered = await self._rendered(self._render, document.url, section)
                return max(rendered, article, key=count_prose)
            except FetchError as error:
                _log.info("%s What it says without is taken.", error)
        return article

    async def _rendered(self, render: PageRenderer, url: str, section: str) -> Article:
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
            raise FetchError(f"{document.url} is too tangled to be read; use another source.") from error


_SCRIPT = re.compile(rb"<script\b", re.IGNORECASE)
# What frameworks put a page in, with no more than a line in it.
_EMPTY_ROOT = re.compile(
    rb"""\bid\s{0,9}=\s{0,9}["']?(?:root|app|__next|__nuxt)(?:>|["'\s][^<>]{0,300}>)[^<>]{0,300}<(?:/|script\b)""",
    re.IGNORECASE,
)
_ROOT_WITHIN_BYTES = 200_000
_NOTICE = re.compile(
    r"java\s?script|^\W*loading\b|\bloading\W*$|please wait|just a moment|加载中|正在加载|请稍候|読み込み中",
    re.IGNORECASE,
)
_LONGEST_NOTICE = 200
_LINK = re.compile(r"!?\[[^\[\]]{0,300}\]\([^()]{0,2000}\)")
# A page with more prose than this has said something, whatever it says about scripts.
_NEXT_TO_NOTHING_CHARACTERS = 400
_SHORT_CHARACTERS = 10_000


def may_need_javascript(document: FetchedDocument, article: Article | None) -> bool:
    """Whether scripts may have more to say than `article`, which is all that was read, None for nothing."""
    if document.media_type not in HTML or not _SCRIPT.search(document.body):
        return False
    if article is None:
        return True
    said = count_prose(article)
    if said >= _NEXT_TO_NOTHING_CHARACTERS:
        return False
    is_notice = any(_is_notice(line) for line in article.markdown.splitlines())
    return said == 0 or is_notice or bool(_EMPTY_ROOT.search(document.body[:_ROOT_WITHIN_BYTES]))


def count_prose(article: Article) -> int:
    """How much an article says besides its title, its links and that it is loading or wants JavaScript."""
    text = article.markdown
    if len(text) >= _SHORT_CHARACTERS:
        return len(text)
    lines = [_LINK.sub("", line).strip("#*- ") for line in text.splitlines()]
    return sum(len(line) for line in lines if line != article.title and not _is_notice(line))


def _is_notice(line: str) -> bool:
    return len(line) < _LONGEST_NOTICE and bool(_NOTICE.search(line))


MAX_PICTURE_BYTES = 3_750_000
"""Of one picture: written as text it is 5 MB, which is as much as providers take."""
MIN_PIXELS = 200
"""On each side: what is smaller is an icon, an avatar or a counter."""
MAX_PIXELS = 8_000
"""On each side: providers refuse more."""
_TIMEOUT_SECONDS = 10
_KEPT_BYTES = 30_000_000
_KEPT_SECONDS = 600
_OVERHEAD_BYTES = 1_000


class PagePictures:
    """Fetches pictures as pages are fetched, and keeps them for ten minutes: a model is shown them again."""

    def __init__(self, fetch: Callable[[str], Awaitable[FetchedDocument]]) -> None:
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
    picture = identify_picture(body)
    if picture is None or len(body) > MAX_PICTURE_BYTES:
        return False
    sides = (picture.width, picture.height)
    return min(sides) >= MIN_PIXELS and max(sides) <= MAX_PIXELS


def _size(body: bytes) -> int:
    return len(body) + _OVERHEAD_BYTES
