"""Make each worker from what is there: its tools, or the reason why it has none."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool

from maniple.agents import ROLES, Agent, Role, Roles, StepLimits, build_react_agent, choose_llm, sort_workers
from maniple.agents.browsing import BrowserWorker, Browsing, beside_other_tools, build_loop
from maniple.agents.compact import CompactBrowser as PageReading
from maniple.agents.compact import CompactCoder, CompactReporter, CompactResearcher
from maniple.agents.middleware.text_tools import TruncationNotes
from maniple.agents.middleware.tool_availability import DynamicTools, HiddenTools
from maniple.agents.middleware.tool_results import (
    ReadPicture,
    ResultLengthLimit,
    ResultPictures,
    SecretMasking,
    drawn_figures,
    page_pictures,
    server_pictures,
)
from maniple.agents.report import CheckedReport
from maniple.config import TeamSettings
from maniple.llms import ChatModels, prompting_of
from maniple.redaction import Redactor
from maniple.tools.browser import browsing_tool
from maniple.tools.files import READ_RESULT, StoredResults
from maniple.tools.interaction import ask_tools
from maniple.types import Worker


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The tools of each worker, and of those that lack something, what."""

    tools: Mapping[Worker, Sequence[BaseTool]] = field(default_factory=dict)
    missing: Mapping[Worker, str] = field(default_factory=dict)
    figures: ReadPicture | None = None
    """Reads what the coder's tools drew and servers sent."""
    page_pictures: ReadPicture | None = None
    """Reads the pictures of pages that the researcher's tools read."""
    has_files: Callable[[], Awaitable[bool]] | None = None
    """Says whether there is any file in the current thread's workspace."""
    offers: Mapping[Worker, DynamicTools] = field(default_factory=dict)
    """Tools that come and go beside the others; a small model's workers do without."""
    kept_results: StoredResults | None = None
    """Keeps the whole of results that are too long for a conversation."""
    redactor: Redactor = field(default_factory=Redactor)
    """Masks the secrets of the settings in what tools return."""
    added: Mapping[Worker, Sequence[BaseTool]] = field(default_factory=dict)
    """Tools that are given beside those: all that the team's own roles have, and some for the others."""
    skills: Mapping[Worker, str] = field(default_factory=dict)
    """What the prompts say of skills."""
    browsing: Browsing | None = None
    """What whoever works in the browser needs; without it there is only the tool that reads pages."""

    def of(self, name: Worker) -> list[BaseTool]:
        """Return what the worker does its work with; the reporter has nothing."""
        return list(self.tools.get(name, ()))

    def whole(self, name: Worker) -> list[BaseTool]:
        """Return all that the worker has, and what it reads kept results with if it reads no files."""
        tools = [*self.of(name), *self.added.get(name, ())]
        reads_files = any(tool.name == "read_file" for tool in tools)
        wants = (tools or name in self.offers) and self.kept_results is not None and not reads_files
        return [*tools, self.kept_results.reader()] if wants and self.kept_results else tools

    def named(self, worker: Worker, tool: str) -> BaseTool | None:
        """Return one tool of a worker."""
        return next((one for one in self.of(worker) if one.name == tool), None)


def build_workers(
    settings: TeamSettings, models: ChatModels, toolbox: Toolbox, roles: Roles = ROLES
) -> dict[Worker, Agent]:
    """Build the enabled workers that can do something; the reporter is always among them.

    A browser without Chromium and a file manager without tools are left out, so that nobody plans with
    them; a coder without a sandbox still writes code, and says that it was not run. A small model's
    researcher without a search reads pages: the planner plans with it when the request names one. A small
    model follows no other prompt than ours: it has none of the team's own roles.
    """
    workers: dict[Worker, Agent] = {}
    for name in sort_workers(settings.enabled, roles):
        model = models.get(choose_llm(name, roles, settings.llms))
        if name in ("browser", "file_manager") and not toolbox.of(name) and name not in toolbox.offers:
            continue
        if prompting_of(model) == "compact":
            compact = _compact(name, model, toolbox)
            if compact is not None:
                workers[name] = compact
        else:
            role = replace(roles[name], skills=toolbox.skills.get(name, ""))
            workers[name] = _standard(role, model, toolbox, settings)
    return workers


def _standard(role: Role, model: BaseChatModel, toolbox: Toolbox, settings: TeamSettings) -> Agent:
    name, offer, questions = role.name, toolbox.offers.get(role.name), ask_tools(settings.max_questions)
    tools = [_for(model, one, toolbox, settings) for one in toolbox.whole(name)]
    if name == "browser" and toolbox.browsing is not None and not toolbox.added.get(name) and offer is None:
        return BrowserWorker(tools[0])
    limits = StepLimits(
        settings.max_model_calls_per_step, settings.max_tool_calls_per_step, settings.tool_timeout_seconds
    )
    agent = build_react_agent(
        role,
        model,
        [*tools, *questions] if tools or offer else [],
        limits=limits,
        middleware=_middleware(name, model, toolbox, tools),
        offered=[*([offer] if offer else []), *_held_back(name, toolbox, tools)],
    )
    # The coder's prompt speaks of the sandbox, whatever else it is given.
    return replace(agent, has_tools=bool(toolbox.of(name))) if name == "coder" else agent


def _for(model: BaseChatModel, tool: BaseTool, toolbox: Toolbox, settings: TeamSettings) -> BaseTool:
    """Return a worker's tool; the browser's does its work with the worker's own model."""
    if toolbox.browsing is None or tool.name != "browser":
        return tool
    loop = build_loop(
        toolbox.browsing,
        model,
        middleware=[TruncationNotes(), *_guards(model, toolbox)],
        max_questions=settings.max_questions,
        tool_seconds=settings.tool_timeout_seconds,
    )
    return browsing_tool(loop.browse)


def _guards(
    model: BaseChatModel, toolbox: Toolbox, kept: StoredResults | None = None
) -> list[AgentMiddleware[Any, Any]]:
    # In this order: what is kept of a result has no secrets either.
    return [ResultLengthLimit(model, kept), SecretMasking(toolbox.redactor)]


def _held_back(name: Worker, toolbox: Toolbox, tools: Sequence[BaseTool]) -> list[AgentMiddleware[Any, Any]]:
    """Return what keeps tools back that are of no use yet."""
    held: list[AgentMiddleware[Any, Any]] = []
    if toolbox.kept_results is not None and any(tool.name == READ_RESULT for tool in tools):
        held.append(HiddenTools({READ_RESULT}, toolbox.kept_results.are_there))
    if name == "coder" and toolbox.has_files is not None:
        names = {tool.name for tool in toolbox.of("file_manager")} - {"str_replace_editor"}
        held.append(HiddenTools(names, toolbox.has_files))
    return held


def _middleware(
    name: Worker, model: BaseChatModel, toolbox: Toolbox, tools: Sequence[BaseTool]
) -> list[AgentMiddleware[Any, Any]]:
    """Return what a worker has beside the usual."""
    if name == "reporter":
        return [TruncationNotes(), CheckedReport()]
    middleware: list[AgentMiddleware[Any, Any]] = [TruncationNotes()]
    if tools or name in toolbox.offers:
        middleware += _guards(model, toolbox, toolbox.kept_results)
    if toolbox.browsing is not None and any(tool.name == "browser_use" for tool in tools):
        middleware += beside_other_tools(toolbox.browsing, model)
    if toolbox.figures is not None and any(tool.name == "python_repl_tool" for tool in tools):
        middleware.append(ResultPictures(drawn_figures(toolbox.figures)))
    if toolbox.figures is not None and name in toolbox.offers:
        middleware.append(ResultPictures(server_pictures(toolbox.figures)))
    if name == "researcher" and toolbox.page_pictures is not None:
        middleware.append(ResultPictures(page_pictures(toolbox.page_pictures)))
    return middleware


def _compact(name: Worker, model: BaseChatModel, toolbox: Toolbox) -> Agent | None:
    missing = toolbox.missing.get(name, "there is no tool for it")
    match name:
        case "coder":
            return CompactCoder(model, toolbox.named("coder", "python_repl_tool"))
        case "researcher":
            search, crawl = (toolbox.named("researcher", tool) for tool in ("tavily_search", "crawl_tool"))
            return CompactResearcher(search, crawl, missing) if search or crawl else None
        case "browser":
            return PageReading(toolbox.named("browser", "browser"), missing)
        case "reporter":
            return CompactReporter(model, toolbox.missing.get("researcher", ""))
        case _:
            return None
