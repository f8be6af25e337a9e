"""Open what the workers' tools need, and note what is absent."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass

from langchain_core.tools import BaseTool

from maniple.browser import open_browser
from maniple.config import Settings
from maniple.crawler import AddressGuard, Crawler
from maniple.runtime.workers import Toolbox
from maniple.sandbox import Workspaces, open_sandbox
from maniple.search import SearchProvider, open_search
from maniple.tools.browser import browser_tool
from maniple.tools.code import code_tools
from maniple.tools.crawl import crawl_tool
from maniple.tools.files import file_tools
from maniple.tools.search import search_tool
from maniple.types import Unavailable, Worker

WORKSPACES = "workspaces"


@dataclass(frozen=True, slots=True)
class Equipment:
    """The tools of the team, the search that the planner may use, and a sentence for what is absent."""

    toolbox: Toolbox
    search: SearchProvider | None
    notices: tuple[str, ...]


async def open_equipment(settings: Settings, stack: AsyncExitStack) -> Equipment:
    """Open search, sandbox and browser on `stack`; none of them must be there."""
    search = await stack.enter_async_context(open_search(settings.search))
    sandbox = await stack.enter_async_context(open_sandbox(settings.sandbox))
    resolve = AddressGuard(settings.fetch).resolve
    browser = await stack.enter_async_context(open_browser(settings.browser, resolve))
    workspaces = Workspaces(settings.data_dir / WORKSPACES)
    obstacle = await asyncio.to_thread(workspaces.obstacle)

    tools: dict[Worker, list[BaseTool]] = {
        "researcher": [crawl_tool(Crawler(settings.fetch))],
        "coder": [],
        "browser": [],
        "file_manager": [] if obstacle else file_tools(workspaces),
    }
    missing: dict[Worker, str] = {}
    provider = None if isinstance(search, Unavailable) else search
    if isinstance(search, Unavailable):
        missing["researcher"] = str(search)
    else:
        tools["researcher"].insert(0, search_tool(search, limit=settings.search.max_results))
    if obstacle:
        missing["file_manager"] = str(obstacle)
    if isinstance(sandbox, Unavailable) or obstacle:
        missing["coder"] = str(sandbox if isinstance(sandbox, Unavailable) else obstacle)
    else:
        tools["coder"] = code_tools(sandbox, workspaces)
    if isinstance(browser, Unavailable):
        missing["browser"] = str(browser)
    else:
        tools["browser"] = [browser_tool(browser)]
    return Equipment(Toolbox(tools, missing), provider, tuple(dict.fromkeys(missing.values())))
