"""`tavily_search` and `crawl_tool`: the web, under the names that LangManus's clients know."""

import asyncio
import hashlib
import json
import re
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import PurePosixPath
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from maniple.config import SearchSettings, Settings
from maniple.crawler import Article, Crawler
from maniple.crawler.article import read_article
from maniple.crawler.document import FetchedDocument
from maniple.errors import FetchError, FileError, SearchError
from maniple.llms.embeddings import EndpointEmbedder
from maniple.outgoing import OutgoingGuard, SecretRefused
from maniple.reading import MAX_TEXT_CHARACTERS
from maniple.reading.fork_server import ForkServer
from maniple.scope.run_scope import run_key, thread_key
from maniple.search import FolderSearch, SearchGaps, SearchProvider, find_gaps, find_outage
from maniple.search.provider import SearchHit, hit_to_dict
from maniple.search.providers.folder import MEDIA_TYPES, SCHEME
from maniple.tools.documents import SHOWN_PICTURES
from maniple.tools.evidence import cited, record_unread, source_line, unread_line
from maniple.tools.items import ThreadItems
from maniple.tools.picture_origins import PictureOrigin
from maniple.tools.registry import define_tool

WEB_SEARCH = "tavily_search"
"""The name of the tool that searches the web."""
PAPER_SEARCH = "search_papers"
"""The name of the tool that searches scholarly papers; its results have the form of the other's."""
SEARCHES = frozenset({WEB_SEARCH, PAPER_SEARCH})
_INDEX: Final = "folder-index"
"""The folder, beside the store's database, of the index of the folder of documents."""


@dataclass(frozen=True, slots=True)
class TeamSearch:
    """The search that the researcher, the browser and the planner use."""

    provider: SearchProvider
    max_results: int = SearchSettings.model_fields["max_results"].default
    """The hits that `tavily_search` returns at most."""


@define_tool(
    WEB_SEARCH,
    "Search the web. Gives titles, URLs and extracts; read a page with crawl_tool.",
    roles=("researcher",),
    is_core=True,
    idempotent=True,
)
async def search_web(search: TeamSearch, /, query: str) -> str:
    """Return a JSON array of hits, best first.

    Each hit is `{title, url, content, score?, source?, kind?, published?, author?, publisher?, doi?,
    full_text_url?, cite?}`: `source` is the provider, `cite` the hit's number among the sources of the run.
    What the search cannot find is the `note` of one more element. The tool raises `SearchError` if no
    provider is available.
    """
    hits = await search.provider.search(query, limit=search.max_results)
    gaps = (await find_gaps(search.provider)).text
    notes = [{"note": gaps}] if gaps else []
    return json.dumps([*await cited([hit_to_dict(hit) for hit in hits]), *notes], ensure_ascii=False)


def name_site(url: str) -> str:
    """Return the last two labels of an address's host, under which one owner has as many as he likes."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return ".".join(host.split(".")[-2:])


@dataclass(frozen=True, slots=True)
class GuardedSearch:
    """A search whose queries give no secret of the settings away."""

    provider: SearchProvider
    guard: OutgoingGuard

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`."""
        try:
            await asyncio.to_thread(self.guard.check, query, by="a search", thread=thread_key(), to="search")
        except SecretRefused as error:
            raise SearchError(str(error)) from error
        return await self.provider.search(query, limit=limit)

    async def describe_outage(self) -> str:
        """See `maniple.search.chain.OutageReporter`."""
        return await find_outage(self.provider)

    async def find_gaps(self) -> SearchGaps:
        """See `maniple.search.chain.GapReporter`."""
        return await find_gaps(self.provider)


def name_picture(url: str) -> str:
    """Return the name of the file at an address."""
    return unquote(urlsplit(url).path.rpartition("/")[2])


class ArticleReader(Protocol):
    """A reader of pages: a `Crawler`, or a `DocumentReader`."""

    async def crawl(self, url: str, section: str = "") -> Article: ...


_OTHER_SOURCE = "another source"
"""What the messages of `FetchError` advise."""
_OTHER_PAGE = "another page that you were given or that a page links to; there is no web search here"


@dataclass(frozen=True, slots=True)
class TeamReader:
    """What the team reads pages and documents with."""

    articles: ArticleReader
    search: SearchProvider | None = None
    """What finds another page where one cannot be read, if there is a search."""
    guard: OutgoingGuard = field(default_factory=OutgoingGuard)

    async def crawl(self, url: str, section: str) -> Article:
        """Read a page; without a search, a `FetchError` does not advise to find another source.

        Raises `SecretRefused` for an address that would give a secret of the settings away.
        """
        await asyncio.to_thread(
            self.guard.check, url, by="crawl_tool", thread=thread_key(), to=name_site(url)
        )
        try:
            return await self.articles.crawl(url, section)
        except FetchError as error:
            text = str(error).replace(_OTHER_SOURCE, _OTHER_PAGE)
            if text == str(error) or (self.search is not None and not await find_outage(self.search)):
                raise
            raise type(error)(text) from error


@define_tool(
    "crawl_tool",
    "Read a public web page, PDF, Office document, feed or data file as Markdown, by its full URL. "
    "A long one comes in parts: name a section of its outline, by number or heading, to read on.",
    roles=("researcher",),
    is_core=True,
    idempotent=True,
    response_format="content_and_artifact",
)
async def read_web_page(
    reader: TeamReader, items: ThreadItems | None, /, url: str, section: str | int = ""
) -> tuple[str, dict[str, Any] | None]:
    """Return the page as Markdown under its title and its address; a part with an outline of a long one.

    A picture becomes an item of the thread, which is shown. Raises `FetchError` when the page cannot be read.
    """
    asked = url.strip()
    try:
        article = await reader.crawl(asked, str(section))
    except FetchError as error:
        if not section:
            await record_unread(asked, str(error))
        raise
    # All of it: the report may quote a section that is read later.
    text = article.whole or article.markdown
    if article.is_source:
        source = await source_line(article.url, article.title, text, asked=asked, about=article.publication)
    else:
        source = await unread_line(article.url, article.kind, asked=asked)
    shown = article.text.replace(f"Source: {article.url}", source, 1)
    if not article.picture or items is None:
        return shown, None
    origin = PictureOrigin("web", article.url, run=run_key())
    try:
        path = await items.store_picture(name_picture(article.url), article.picture, origin)
    except FileError as error:
        return f"{shown}\n\n[It is not kept as a file: {error}]", None
    return f"{shown}\n\n[It is kept as {path}.]", {SHOWN_PICTURES: [path]}


def open_document_folder(settings: Settings, fork_server: ForkServer | None = None) -> FolderSearch | None:
    """Return the search in the configured folder, or None. Nothing is read before it is used. Blocks on disk.

    Documents that are not text are read in processes of `fork_server`, or of a new one. The index is in the
    data folder; with `store.backend: memory` it is temporary. With `models.embedding` its passages go there.
    """
    own = settings.search
    if own.folder is None or (own.providers is not None and "folder" not in own.providers):
        return None
    from maniple.store.configured import storage_folder  # 0.6 s that only a folder costs

    databases = storage_folder(settings, _INDEX) if settings.store.backend != "memory" else None
    fork_server = fork_server or ForkServer()
    read = partial(_read_for_index, fork_server)
    embedding = settings.models.embedding
    embedder = EndpointEmbedder(embedding) if embedding is not None else None
    version = _reader_version(fork_server)
    return FolderSearch(own.folder, read, databases, reader=version, embedder=embedder)


def _reader_version(fork_server: ForkServer) -> str:
    """Return what changes when documents are read in another way: by another version, or other loaders."""
    known = (
        f"{version('maniple')} {sorted(MEDIA_TYPES)} {sorted(fork_server.loaders.by_type.items(), key=str)}"
    )
    return hashlib.sha256(known.encode("utf-8", "replace")).hexdigest()[:16]


class DocumentReader:
    """Reads web pages, and the folder's documents by their `folder:` addresses."""

    def __init__(
        self,
        crawler: Crawler,
        folder: FolderSearch,
        max_characters: int,
        fork_server: ForkServer | None = None,
    ) -> None:
        self._crawler = crawler
        self._fork_server = fork_server or ForkServer()
        self._folder = folder
        self._max_characters = max_characters

    async def crawl(self, url: str, section: str = "") -> Article:
        """See `Crawler.crawl`; raises `ToolFailure`."""
        if not url.startswith(SCHEME):
            return await self._crawler.crawl(url, section)
        name, body = await self._folder.read(url)
        return await read_article(
            _document(url, name, body), self._max_characters, self._fork_server, section
        )


def add_documents(
    settings: Settings, crawler: Crawler, folder: FolderSearch | None, fork_server: ForkServer
) -> ArticleReader:
    """Return a reader of pages and, if there is a `folder`, of its documents."""
    if folder is None:
        return crawler
    return DocumentReader(crawler, folder, settings.fetch.max_characters, fork_server)


async def _read_for_index(fork_server: ForkServer, name: str, body: bytes) -> tuple[str, str, str]:
    article = await read_article(_document(name, name, body), MAX_TEXT_CHARACTERS, fork_server)
    return article.title, article.markdown, article.note


def _document(url: str, name: str, body: bytes) -> FetchedDocument:
    return FetchedDocument(url, MEDIA_TYPES[PurePosixPath(name).suffix.lower()], None, body)


# White space, quotes, brackets and Chinese punctuation end an address; in addresses they are always escaped.
_ADDRESS = re.compile(r"https?://[^\s<>\"'`{}|\\^\[\]，。；：！？、（）【】《》「」“”‘’]+", re.IGNORECASE)


def find_address(text: str) -> str | None:
    """Return the first http or https address in `text`, without the punctuation that ends the sentence."""
    found = _ADDRESS.search(text)
    if found is None:
        return None
    address = found[0].rstrip(".,;:!?*_")
    while address.endswith(")") and address.count(")") > address.count("("):
        address = address[:-1].rstrip(".,;:!?*_")
    return address
