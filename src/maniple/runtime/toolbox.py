"""Open what the workers' tools need, and note what is absent."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from langchain_core.tools import BaseTool

from maniple.agents.browsing import Browsing
from maniple.browser import Aids, Browser, open_browser_if_any
from maniple.config import Settings
from maniple.config.secrets import redactor_of
from maniple.crawler import Crawler
from maniple.egress import AddressGuard, EgressRoute
from maniple.reading.fork_server import ForkServer
from maniple.runtime.browser_storage import browser_folder_of
from maniple.runtime.mcp import open_mcp
from maniple.runtime.own_tools import own_tools
from maniple.runtime.rendering import rendering
from maniple.runtime.skills import skills_of
from maniple.runtime.surroundings import network_sentence, packages_sentence
from maniple.runtime.workers import Toolbox
from maniple.sandbox import Sandbox, Workspaces, open_sandbox
from maniple.sandbox.backends.local import WARNING as UNSAFE
from maniple.search import SearchContext, SearchProvider, missing_settings, open_search
from maniple.store.configured import place_of
from maniple.tools.browser import browser_tool
from maniple.tools.browser_aids import browser_aids
from maniple.tools.browser_use import browser_use_tool
from maniple.tools.browser_window import Window
from maniple.tools.code import code_tools, figure_reader
from maniple.tools.files import (
    NamedFiles,
    StoredResults,
    build_file_check,
    file_search_tool,
    file_tools,
    uploaded_files,
)
from maniple.tools.interaction import terminate_tool
from maniple.tools.run_context import locale, run_key
from maniple.tools.text_editor import editor_tool
from maniple.tools.web import add_documents, crawl_tool, open_document_folder, search_tool
from maniple.types import GENERAL, Unavailable, Worker

if TYPE_CHECKING:
    from maniple.mcp import McpServers

_FOLDER = "workspaces"


def workspaces_of(settings: Settings) -> Workspaces:
    """Return the threads' workspaces, which belong to their database, as large as `settings` say. Blocks."""
    place = place_of(settings, _FOLDER)
    return Workspaces(place.folder, place.earlier, max_bytes=settings.sandbox.disk_mb * 1024 * 1024)


@dataclass(frozen=True, slots=True)
class Equipment:
    """The tools of the team, the search that the planner may use, and a sentence for what is absent."""

    toolbox: Toolbox
    search: SearchProvider | None
    notices: tuple[str, ...]
    files: NamedFiles | None = None
    """Names what the user put into the workspace."""
    sandbox: Sandbox | None = None
    mcp: "McpServers | None" = None
    browser: Browser | None = None


async def open_equipment(settings: Settings, stack: AsyncExitStack) -> Equipment:
    """Open search, sandbox and browser on `stack`; none of them must be there."""
    fork_server = ForkServer()
    stack.callback(fork_server.close)
    documents = open_document_folder(settings.search, fork_server)
    context = SearchContext(run_key, locale, documents)
    search = await stack.enter_async_context(open_search(settings.search, context))
    egress = EgressRoute(AddressGuard(settings.fetch).resolve, asyncio.open_connection)
    sandbox = await stack.enter_async_context(
        open_sandbox(settings.sandbox, cache_dir=settings.cache_dir, egress=egress)
    )
    folder = await asyncio.to_thread(browser_folder_of, settings)
    browser = await stack.enter_async_context(open_browser_if_any(settings.browser, storage=folder))
    workspaces = await asyncio.to_thread(workspaces_of, settings)
    unavailable = await asyncio.to_thread(workspaces.unavailable_reason)
    places = None if unavailable else workspaces

    crawler = Crawler(settings.fetch, rendering(browser), fork_server)
    tools: dict[Worker, list[BaseTool]] = {
        "researcher": [crawl_tool(add_documents(settings, crawler, documents, fork_server))],
        "coder": [],
        "browser": [],
        "file_manager": [] if unavailable else _for_files(workspaces),
    }
    missing: dict[Worker, str] = {}
    browsing: Browsing | None = None
    provider = None if isinstance(search, Unavailable) else search
    if isinstance(search, Unavailable):
        missing["researcher"] = str(search)
    else:
        tools["researcher"].insert(0, search_tool(search, limit=settings.search.max_results))
    if unavailable:
        missing["file_manager"] = str(unavailable)
    if isinstance(sandbox, Unavailable) or unavailable:
        missing["coder"] = str(sandbox if isinstance(sandbox, Unavailable) else unavailable)
    else:
        packages = await asyncio.to_thread(packages_sentence, settings)
        words = {"packages": packages, "network": network_sentence(settings)}
        tools["coder"] = [*code_tools(sandbox, workspaces, **words), *tools["file_manager"]]
    if isinstance(browser, Unavailable):
        missing["browser"] = str(browser)
    else:
        tools["browser"] = [browser_tool(browser)]
        lent = await asyncio.to_thread(
            TemporaryDirectory, prefix="maniple-uploads-", ignore_cleanup_errors=True
        )
        stack.push_async_callback(asyncio.to_thread, lent.cleanup)
        window = Window(browser, _aids(settings, provider, places, Path(lent.name)))
        searches = [tool for tool in tools["researcher"] if tool.name == "tavily_search"]
        browsing = Browsing(window, settings.browser.browsing, searches)
    files = None if unavailable else uploaded_files(workspaces)
    redactor = redactor_of(settings)
    kept = None if unavailable else StoredResults(workspaces, redactor)
    mcp = await open_mcp(settings, stack, sandbox=sandbox, egress=egress, kept=kept)
    present = [tool for each in tools.values() for tool in each]
    if browsing is not None:
        present.append(browser_use_tool(browsing.window))
    if GENERAL in settings.team.members:
        # It works in the browser itself.
        own = {tool.name: tool for tool in present if tool.name != "browser"}
        tools[GENERAL] = [*own.values(), terminate_tool()]
    added = await asyncio.to_thread(own_tools, settings, present)
    skills = await asyncio.to_thread(skills_of, settings, places)
    toolbox = Toolbox(
        tools,
        missing,
        figures=figure_reader(workspaces),
        page_pictures=crawler.picture if settings.fetch.images else None,
        has_files=build_file_check(workspaces),
        offers=mcp.offers,
        kept_results=kept,
        redactor=redactor,
        added={name: [*added.get(name, ()), *skills.tools(name)] for name in settings.team.workers},
        skills=skills.words,
        browsing=browsing,
    )
    unsafe = [] if "coder" in missing or settings.sandbox.backend != "unsafe-local" else [UNSAFE]
    notices = tuple(
        dict.fromkeys(
            (*unsafe, *missing.values(), *mcp.notices, *skills.notices, *_unequipped(settings, provider))
        )
    )
    own = None if isinstance(sandbox, Unavailable) else sandbox
    opened = None if isinstance(browser, Unavailable) else browser
    return Equipment(toolbox, provider, notices, files, own, mcp.servers, opened)


def _aids(
    settings: Settings, search: SearchProvider | None, workspaces: Workspaces | None, lent: Path
) -> Aids:
    return browser_aids(search, workspaces, lent, most_bytes=settings.browser.max_download_bytes)


def _for_files(workspaces: Workspaces) -> list[BaseTool]:
    return [*file_tools(workspaces), file_search_tool(workspaces), editor_tool(workspaces)]


def _unequipped(settings: Settings, provider: SearchProvider | None) -> list[str]:
    """Say which providers are left out although others search; that nobody does is said elsewhere."""
    wants = missing_settings(settings.search) if provider else {}
    return [f"search.providers names {name}, which needs {want}." for name, want in wants.items()]
