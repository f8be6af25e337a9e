"""The browser: the worker `browser`, and the tool `browser_use` for agents that also have other tools."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, Final

from langchain_core.tools import BaseTool

from maniple.agents.browsing import BrowsingResources, browser_middleware, build_loop
from maniple.agents.browsing.earlier_views import EarlierViews
from maniple.agents.browsing.screenshots import LastViews, ScreenshotSaver
from maniple.agents.middleware.item_pictures import ItemPictures
from maniple.agents.middleware.text_tools import TruncationNotes
from maniple.agents.offers import Middleware, Offer, WorkerContext
from maniple.agents.profiles import result_guards
from maniple.browser import Browser, open_browser
from maniple.browser.drivers.session import BrowserStorage
from maniple.capabilities.base import Capability, CapabilityContext, TeamBrowser
from maniple.config import Settings
from maniple.outgoing import OutgoingGuard
from maniple.redaction import Redactor
from maniple.sandbox import find_chromium_isolation
from maniple.search import find_outage
from maniple.store.configured import storage_folder
from maniple.tools.browser import browser_tool, browser_use_tool, browsing_tool
from maniple.tools.findings import NOTE_FINDING
from maniple.tools.items import StoredResults, ThreadItems
from maniple.tools.registry import TOOLS
from maniple.tools.thread_browser import ThreadBrowser, browser_services
from maniple.tools.web import TeamSearch
from maniple.workspace import Workspaces

_FOLDER: Final = "browser"


class BrowserCapability(Capability):
    """A real browser, for reading pages and for working in them."""

    name: ClassVar = "browser"
    roles: ClassVar = ("browser",)
    provides: ClassVar = (TeamBrowser, BrowsingResources)

    async def open(self, context: CapabilityContext) -> Offer:
        settings = context.settings
        storage = await asyncio.to_thread(browser_folder_of, settings)
        browser = await context.stack.enter_async_context(
            open_browser(
                settings.browser, storage=storage, isolation=find_chromium_isolation(settings.sandbox)
            )
        )
        uploads = await asyncio.to_thread(
            TemporaryDirectory, prefix="maniple-uploads-", ignore_cleanup_errors=True
        )
        context.stack.push_async_callback(asyncio.to_thread, uploads.cleanup)
        search = context.service(TeamSearch)
        guard = context.service(OutgoingGuard) or OutgoingGuard()
        services = browser_services(
            search.provider if search else None,
            context.service(Workspaces),
            Path(uploads.name),
            max_bytes=settings.browser.max_download_bytes,
            guard=guard,
        )
        if (items := context.service(ThreadItems)) is not None:
            services = replace(services, save_picture=ScreenshotSaver(items))
        searcher = TOOLS["tavily_search"].build(context.services)
        searches = [searcher] if searcher else []
        browsing = BrowsingResources(
            ThreadBrowser(browser, services, guard),
            settings.browser.browsing,
            searches,
            partial(find_outage, search.provider) if search else None,
            _readers(context),
            EarlierViews(stored) if (stored := context.service(StoredResults)) else None,
        )
        offer = browsing_offer(
            browsing,
            browser_tool(browser, guard),
            context.service(Redactor),
        )
        return replace(offer, services={**offer.services, TeamBrowser: TeamBrowser(browser)})


def _readers(context: CapabilityContext) -> list[BaseTool]:
    """Return the tools that read what the browser downloads and what the run has read, and note findings."""
    files, noting = (TOOLS[name].build(context.services) for name in ("read_file", NOTE_FINDING))
    stored = context.service(StoredResults)
    readers = [*([files] if files else []), *([stored.reader()] if stored else [])]
    return [*readers, noting] if readers and noting else readers


def browsing_offer(
    browsing: BrowsingResources,
    tool: BaseTool,
    redactor: Redactor | None = None,
) -> Offer:
    """Return the offer of a browser: the worker's `tool`, and the middleware of `browser_use`."""
    return Offer(
        {"browser": [tool]},
        middleware=[partial(_browser_middleware, browsing)],
        bind_tools={"browser": partial(_bound_to_model, browsing, redactor)},
        direct_workers=("browser",),
        services={BrowsingResources: browsing},
    )


def browser_use_of(browsing: BrowsingResources | None) -> Sequence[BaseTool]:
    """Return the tool with which an agent operates the browser itself; empty without a browser."""
    return [] if browsing is None else [browser_use_tool(browsing.browser)]


def _browser_middleware(browsing: BrowsingResources, worker: WorkerContext) -> Sequence[Middleware]:
    return browser_middleware(browsing, worker.model) if worker.has_tool("browser_use") else []


def _bound_to_model(
    browsing: BrowsingResources,
    redactor: Redactor | None,
    tool: BaseTool,
    worker: WorkerContext,
) -> BaseTool:
    """Return the tool `browser`, which runs an agent loop with the worker's own model."""
    loop = build_loop(
        browsing,
        worker.model,
        middleware=[
            TruncationNotes(),
            *([ItemPictures(worker.pictures)] if worker.pictures else []),
            *result_guards(worker.model, redactor),
        ],
        max_questions=worker.settings.max_questions,
        tool_seconds=worker.settings.tool_timeout_seconds,
    )
    if browsing.settings.vision == "never":
        return browsing_tool(loop.browse)
    return browsing_tool(LastViews(loop, browsing.browser).browse)


def browser_folder_of(settings: Settings) -> Path:
    """Return the folder of the threads' cookies and local storage, if they are stored. Blocks on disk."""
    return storage_folder(settings, _FOLDER)


async def forget_in_browser(browser: Browser | None, settings: Settings, thread_id: str) -> None:
    """Close a thread's tabs and delete its stored cookies, also those that an earlier process stored."""
    if browser is not None:
        await browser.forget(thread_id)
    folder = await asyncio.to_thread(browser_folder_of, settings)
    await asyncio.to_thread(BrowserStorage(folder).remove, thread_id)
