"""Reading web pages: fetched with care, reduced to what a person would read."""

import asyncio
import logging
import os

from maniple.config.fetch_settings import FetchSettings
from maniple.crawler.article import Article, Document
from maniple.crawler.extract import read_article
from maniple.crawler.fetch import Fetcher
from maniple.crawler.jina import JinaReader
from maniple.crawler.pictures import PagePictures
from maniple.crawler.rendering import Render, may_need_scripts, said_characters
from maniple.egress import AddressGuard, PermanentFetchError
from maniple.errors import FetchError, ToolFailure
from maniple.reading.isolated import Nursery

_RENDERED_AT_ONCE = 2
_log = logging.getLogger(__name__)


class Crawler:
    """Reads pages for the researcher, in one of three ways: by itself, in a browser, through Jina's reader.

    `render` is the browser, for pages that are empty without scripts; without one they are refused. Large
    pages and other documents are read in the processes of `nursery`, which its owner closes; without one,
    in those of a nursery that ends with the crawler.

    Raises:
        ConfigError: an entry of `fetch.allow_private` is not a network.
    """

    def __init__(
        self, settings: FetchSettings, render: Render | None = None, nursery: Nursery | None = None
    ) -> None:
        self._settings = settings
        self._fetcher = Fetcher(settings, AddressGuard(settings))
        self._reader = JinaReader(settings)
        self._render = render
        self._nursery = nursery or Nursery()
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
            if self._render is None or not may_need_scripts(document, None):
                raise
            return await self._rendered(self._render, document.url, section)
        if self._render is not None and may_need_scripts(document, article):
            try:
                rendered = await self._rendered(self._render, document.url, section)
                return max(rendered, article, key=said_characters)
            except FetchError as error:
                _log.info("%s What it says without is taken.", error)
        return article

    async def _rendered(self, render: Render, url: str, section: str) -> Article:
        try:
            async with self._renders, asyncio.timeout(self._settings.timeout_seconds):
                document = await render(url)
        except TimeoutError as error:
            raise FetchError(f"{url} needs JavaScript and took too long; use another source.") from error
        except ToolFailure as error:
            raise FetchError(f"{url} needs JavaScript, and the browser failed: {error}") from error
        return await self._read(document, section)

    async def _read(self, document: Document, section: str) -> Article:
        try:
            async with self._readings, asyncio.timeout(self._settings.timeout_seconds):
                return await read_article(document, self._settings.max_characters, self._nursery, section)
        except TimeoutError as error:
            raise FetchError(f"{document.url} is too tangled to be read; use another source.") from error
