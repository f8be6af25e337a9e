"""Reading web pages: fetched with care, reduced to what a person would read."""

import asyncio

from maniple.config.settings import FetchSettings
from maniple.crawler.article import Article
from maniple.crawler.extract import extract_article
from maniple.crawler.fetch import Fetcher


class Crawler:
    """Reads pages for the researcher; keeps nothing between two calls."""

    def __init__(self, settings: FetchSettings) -> None:
        self._fetcher = Fetcher(settings)
        self._max_characters = settings.max_characters

    async def crawl(self, url: str) -> Article:
        """The readable part of the page at `url`, as Markdown.

        Raises:
            FetchError: the page cannot be fetched or holds no text.
        """
        document = await self._fetcher.fetch(url)
        return await asyncio.to_thread(extract_article, document, self._max_characters)
