"""Web search, and reading pages and documents as text."""

import asyncio
from functools import partial
from typing import Any, ClassVar

from maniple.agents.middleware.tool_results import ReadPicture, ResultPictures, page_picture_source
from maniple.agents.offers import Middleware, Offer, WorkerContext
from maniple.browser import Browser
from maniple.capabilities.base import Capability, CapabilityContext, TeamBrowser
from maniple.crawler import Crawler, FetchedDocument, PageRenderer
from maniple.outgoing import OutgoingGuard
from maniple.reading.fork_server import ForkServer
from maniple.scope.context import locale
from maniple.scope.run_scope import run_key
from maniple.search import FolderSearch, SearchContext, missing_settings, open_searches
from maniple.search.chain import RunSearchCache
from maniple.tools.items import ThreadItems
from maniple.tools.papers import TeamPapers
from maniple.tools.web import GuardedSearch, TeamReader, TeamSearch, add_documents
from maniple.tools.web_pictures import WebPictures


class SearchCapability(Capability):
    """Search of the web, of scholarly papers and of the folder of documents."""

    name: ClassVar = "search"
    roles: ClassVar = ("researcher",)
    provides: ClassVar = (TeamSearch, TeamPapers)

    async def open(self, context: CapabilityContext) -> Offer:
        settings, folder = context.settings.search, context.service(FolderSearch)
        guard = context.service(OutgoingGuard) or OutgoingGuard()
        opening = open_searches(settings, SearchContext(run_key, locale, folder))
        searches = await context.stack.enter_async_context(opening)
        if folder is not None:
            folder.start()
        missing = await asyncio.to_thread(missing_settings, settings)
        web = GuardedSearch(RunSearchCache(searches.web, run_key), guard)
        services: dict[type[Any], Any] = {TeamSearch: TeamSearch(web, settings.max_results)}
        if searches.papers is not None:
            services[TeamPapers] = TeamPapers(searches.papers, settings.max_results, guard)
        return Offer(
            services=services,
            notices=tuple(
                f"search.providers or search.papers names {name}, which needs {need}."
                for name, need in missing.items()
            ),
        )


class CrawlCapability(Capability):
    """Reading of web pages and documents, rendered by the browser where a page is empty without scripts."""

    name: ClassVar = "crawl"
    provides: ClassVar = (TeamReader, WebPictures)

    async def open(self, context: CapabilityContext) -> Offer:
        settings, processes = context.settings, context.require(ForkServer)
        browser = context.service(TeamBrowser)
        render = None if browser is None else rendering(browser.browser)
        crawler = Crawler(settings.fetch, render, processes)
        folder = context.service(FolderSearch)
        search = context.service(TeamSearch)
        articles = add_documents(settings, crawler, folder, processes)
        guard = context.service(OutgoingGuard) or OutgoingGuard()
        reader = TeamReader(articles, search.provider if search is not None else None, guard)
        services: dict[type[Any], Any] = {TeamReader: reader}
        if (items := context.service(ThreadItems)) is not None:
            services[WebPictures] = WebPictures(crawler.fetch_picture, items, guard)
        pictures = [partial(_shown_pictures, crawler.picture)] if settings.fetch.images else []
        return Offer(services=services, middleware=pictures)


def rendering(browser: Browser) -> PageRenderer:
    """Return the renderer for pages that are empty without scripts."""

    async def render(url: str, /) -> FetchedDocument:
        page = await browser.source(url)
        return FetchedDocument(page.url, "text/html", "utf-8", page.html.encode("utf-8", "replace"))

    return render


def _shown_pictures(read: ReadPicture, worker: WorkerContext) -> list[Middleware]:
    return [ResultPictures(page_picture_source(read))] if worker.name == "researcher" else []
