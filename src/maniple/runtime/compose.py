"""The composition root: the one place where settings become objects."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from maniple.agents import DEFAULT_LLMS
from maniple.browser import open_browser
from maniple.config import Settings, load_settings
from maniple.crawler import Crawler
from maniple.graph import Team, TeamRules, build_graph
from maniple.llms import ChatModels
from maniple.llms.embedded import Progress, Silent
from maniple.runtime.answering import Answering, open_models
from maniple.runtime.workers import Toolbox, build_workers
from maniple.sandbox import Workspaces, open_sandbox
from maniple.search import SearchProvider, open_search
from maniple.tools import browser_tool, code_tools, crawl_tool, file_tools, search_tool


@dataclass(frozen=True, slots=True)
class Runtime:
    """An open team and what people should know of it."""

    graph: Team
    settings: Settings
    answering: Answering
    notices: tuple[str, ...] = ()
    """One sentence for each thing that is absent, with how to get it."""


@asynccontextmanager
async def open_runtime(
    settings: Settings,
    *,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    progress: Progress | None = None,
) -> AsyncIterator[Runtime]:
    """Open everything the team needs, and close it again.

    `progress` hears of the embedded model's fetching and loading. Raises `ConfigError`, `ModelError` or
    `EmbeddedModelError` when the team cannot answer at all; whatever else is absent becomes a notice.
    """
    async with AsyncExitStack() as stack:
        models, answering = await stack.enter_async_context(open_models(settings, progress or Silent()))
        search, toolbox, notices = await _open_toolbox(settings, stack)
        notices += _borrowed_models(models, settings)
        team = settings.team
        graph = build_graph(
            models,
            build_workers(team, models, toolbox),
            rules=TeamRules(team.llms, team.supervisor, team.step_retries, team.max_plan_steps),
            search=search,
            checkpointer=checkpointer,
        )
        yield Runtime(graph, settings, answering, tuple(notices))


@asynccontextmanager
async def open_team(
    settings: Settings | None = None,
    *,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    progress: Progress | None = None,
) -> AsyncIterator[Team]:
    """Open the team as a compiled graph, to be run or to be a node of another graph.

    Without settings they are read from `conf.yaml`, `.env` and the environment. Without a checkpointer the
    team inherits that of the graph it is embedded in.
    """
    settings = settings or load_settings()
    async with open_runtime(settings, checkpointer=checkpointer, progress=progress) as runtime:
        yield runtime.graph


async def _open_toolbox(
    settings: Settings, stack: AsyncExitStack
) -> tuple[SearchProvider | None, Toolbox, list[str]]:
    missing: dict[str, str] = {}
    workspaces = Workspaces(settings.data_dir / "workspaces")
    crawler = Crawler(settings.fetch)
    search = await stack.enter_async_context(open_search(settings.search))
    sandbox = await stack.enter_async_context(open_sandbox(settings.sandbox))
    browser = await stack.enter_async_context(open_browser(settings.browser, crawler))
    return search, Toolbox(), list(missing.values())


def _borrowed_models(models: ChatModels, settings: Settings) -> list[str]:
    """Say once which configured choice falls back to the basic model."""
    wanted = {settings.team.llms.get(role, kind) for role, kind in DEFAULT_LLMS.items()}
    return []
