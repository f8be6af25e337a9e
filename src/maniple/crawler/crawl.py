"""Reading web pages: fetched with care, reduced to what a person would read."""

import asyncio

from maniple.config.settings import FetchSettings
from maniple.crawler.article import Article
from maniple.crawler.extract import extract_article
from maniple.crawler.fetch import Fetcher
from maniple.errors import FetchError


class Crawler:
    """Reads pages for the researcher; keeps nothing between two calls."""

    def __init__(self, settings: FetchSettings) -> None:
        self._fetcher = Fetcher(settings)
        self._max_characters = settings.max_characters
        self._timeout_seconds = settings.timeout_seconds

    async def crawl(self, url: str) -> Article:
        """The readable part of the page at `url`, as Markdown.

        Raises:
            FetchError: the page cannot be fetched or holds no text.
        """
        document = await self._fetcher.fetch(url)
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await asyncio.to_thread(extract_article, document, self._max_characters)
        except TimeoutError as error:
            raise FetchError(f"{url} is too tangled to be read; use another source.") from error
