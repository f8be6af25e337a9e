"""The folder of documents: searched beside the web, and read as pages are."""

from functools import partial
from pathlib import PurePosixPath

from maniple.config import SearchSettings, Settings
from maniple.crawler import Article, Crawler
from maniple.crawler.article import Document
from maniple.crawler.extract import read_article
from maniple.reading.isolated import Nursery
from maniple.reading.plain import MAX_TEXT_CHARACTERS
from maniple.search import FolderSearch
from maniple.search.providers.folder import MEDIA_TYPES, SCHEME
from maniple.tools.crawl import Reads


def open_folder(settings: SearchSettings, nursery: Nursery | None = None) -> FolderSearch | None:
    """Return the folder that is searched, or None. Nothing is read before the first search.

    What is no text is read in the processes of `nursery`, or of one of its own.
    """
    if settings.folder is None or (settings.providers is not None and "folder" not in settings.providers):
        return None
    return FolderSearch(settings.folder, partial(_indexed, nursery or Nursery()))


class PagesAndDocuments:
    """Reads what search found: web pages, and the folder's documents by their `folder:` addresses."""

    def __init__(
        self, crawler: Crawler, folder: FolderSearch, max_characters: int, nursery: Nursery | None = None
    ) -> None:
        self._crawler = crawler
        self._nursery = nursery or Nursery()
        self._folder = folder
        self._max_characters = max_characters

    async def crawl(self, url: str, section: str = "") -> Article:
        """See `Crawler.crawl`; raises `ToolFailure`."""
        if not url.startswith(SCHEME):
            return await self._crawler.crawl(url, section)
        name, body = await self._folder.read(url)
        return await read_article(_document(url, name, body), self._max_characters, self._nursery, section)


def with_documents(
    settings: Settings, crawler: Crawler, folder: FolderSearch | None, nursery: Nursery
) -> Reads:
    """Return what reads pages and, where there is a `folder`, its documents."""
    if folder is None:
        return crawler
    return PagesAndDocuments(crawler, folder, settings.fetch.max_characters, nursery)


async def _indexed(nursery: Nursery, name: str, body: bytes) -> tuple[str, str, str]:
    article = await read_article(_document(name, name, body), MAX_TEXT_CHARACTERS, nursery)
    return article.title, article.markdown, article.note


def _document(url: str, name: str, body: bytes) -> Document:
    return Document(url, MEDIA_TYPES[PurePosixPath(name).suffix.lower()], None, body)
