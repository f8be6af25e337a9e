"""Profiles: how the team works with models of different strength."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool

from maniple.agents.browsing import BrowserWorker, BrowsingResources
from maniple.agents.claim_judge import JudgeChoice
from maniple.agents.compact import CompactBrowser as PageReading
from maniple.agents.compact import CompactCoder, CompactReporter, CompactResearcher
from maniple.agents.middleware.client_tools import ClientTools
from maniple.agents.middleware.item_pictures import ItemPictureReader, ItemPictures
from maniple.agents.middleware.limits import StepLimits
from maniple.agents.middleware.text_tools import TruncationNotes
from maniple.agents.middleware.tool_availability import HiddenTools
from maniple.agents.middleware.tool_results import ResultLengthLimit, SecretMasking
from maniple.agents.offers import Middleware, Offer, WorkerContext
from maniple.agents.react import build_react_agent
from maniple.agents.report import CheckedReport
from maniple.agents.roles import ROLES, Role, Roles, choose_llm, sort_workers
from maniple.agents.task import Agent
from maniple.config import TeamSettings
from maniple.llms import ChatModels, prompting_of
from maniple.redaction import Redactor
from maniple.tools.files import READ_FILE
from maniple.tools.interaction import ask_tools
from maniple.tools.item_search import SEARCH_ITEMS, ItemSearch
from maniple.tools.items import READ_ITEM, StoredResults
from maniple.tools.web_pictures import WebPictures
from maniple.types import ProfileName, Worker

_NO_CLIENT_TOOLS = ("browser", "reporter")
"""The workers that cannot call the functions of a run's client."""
BuildWorker = Callable[[Role, BaseChatModel, Offer, TeamSettings], Agent | None]


@dataclass(frozen=True, slots=True)
class Profile:
    """How the team works with the models of one kind (`models.<type>.profile`)."""

    name: ProfileName
    build_worker: BuildWorker
    """Builds the worker of a role; None if a model of this kind cannot do the role's work."""
    sorts_by_grammar: bool
    """The coordinator chooses one of a few words by a grammar, instead of answering or calling a tool."""
    plans_by_examples: bool
    """The planner follows worked examples with a grammar, in few steps."""
    judges_failures: bool
    """The supervisor asks the model after a failed step; otherwise the report says what is missing."""
    rewrites_plans: bool
    """The planner may replace the rest of a plan that does not work."""


def profile_of(model: BaseChatModel) -> Profile:
    """Return the profile of `model`; models that maniple did not create are standard ones."""
    return PROFILES[prompting_of(model)]


def build_workers(
    settings: TeamSettings, models: ChatModels, offer: Offer, roles: Roles = ROLES
) -> dict[Worker, Agent]:
    """Build the enabled workers that can do something, including the reporter.

    A browser without Chromium and a file manager without tools are left out, so that no plan names them. A
    coder without a sandbox writes code and says that it was not run. A small model's researcher without a
    search reads pages; it is planned only if the request names one. Small models have no configured roles,
    because they follow only the prompts that were made for them.
    """
    workers: dict[Worker, Agent] = {}
    for name in sort_workers(settings.enabled, roles):
        if (
            name in ("browser", "file_manager")
            and not offer.tools_of(name)
            and name not in offer.dynamic_tools
        ):
            continue
        model = models.get(choose_llm(name, roles, settings.llms))
        worker = profile_of(model).build_worker(roles[name], model, offer, settings)
        if worker is not None:
            workers[name] = worker
    return workers


def static_tools(worker: Worker, offer: Offer) -> list[BaseTool]:
    """Return the static tools of a worker, with a reader of stored results if it cannot read files.

    Whoever can open items can also search them.
    """
    tools = [*offer.tools_of(worker), *offer.extra_tools.get(worker, ())]
    stored, search = offer.service(StoredResults), offer.service(ItemSearch)
    reads_files = any(tool.name == READ_FILE for tool in tools)
    if stored is not None and not reads_files and (tools or worker in offer.dynamic_tools):
        web = offer.service(WebPictures)
        tools.append(stored.reader(web.open if web is not None else None))
    opener = next((tool.name for tool in tools if tool.name in (READ_FILE, READ_ITEM)), None)
    return tools if search is None or opener is None else [*tools, search.tool(opener)]


def result_guards(
    model: BaseChatModel, redactor: Redactor | None, stored: StoredResults | None = None
) -> list[Middleware]:
    """Return the middleware that shortens and masks tool results, in an order that masks stored ones, too."""
    return [ResultLengthLimit(model, stored), SecretMasking(redactor or Redactor())]


def _build_standard(role: Role, model: BaseChatModel, offer: Offer, settings: TeamSettings) -> Agent:
    name, dynamic = role.name, offer.dynamic_tools.get(role.name)
    role = replace(role, skills=offer.instructions.get(name, ""))
    context = WorkerContext(
        name, model, static_tools(name, offer), settings, offer.service(ItemPictureReader)
    )
    tools = [_bound(tool, offer, context) for tool in context.tools]
    if name in offer.direct_workers and not offer.extra_tools.get(name) and dynamic is None:
        return BrowserWorker(tools[0])
    agent = build_react_agent(
        role,
        model,
        [*tools, *ask_tools(settings.max_questions)] if tools or dynamic else [],
        limits=StepLimits(
            settings.max_model_calls_per_step, settings.max_tool_calls_per_step, settings.tool_timeout_seconds
        ),
        middleware=_middleware(context, offer),
        offered=[
            *([dynamic] if dynamic else []),
            *([] if name in _NO_CLIENT_TOOLS else [ClientTools()]),
            *_tool_filters(context, offer),
        ],
    )
    browsing = offer.service(BrowsingResources)
    if browsing is not None and context.has_tool("browser_use"):
        agent = replace(agent, find_outage=browsing.find_outage)  # as `browser_middleware` does
    # The coder's prompt depends on the sandbox's tools, not on additional ones.
    if name != "coder":
        return agent
    return replace(agent, has_tools=bool(offer.tools_of(name)), counts_client_tools=False)


def _bound(tool: BaseTool, offer: Offer, context: WorkerContext) -> BaseTool:
    bind = offer.bind_tools.get(tool.name)
    return tool if bind is None else bind(tool, context)


def _tool_filters(context: WorkerContext, offer: Offer) -> list[Middleware]:
    filters: list[Middleware] = []
    stored, search = offer.service(StoredResults), offer.service(ItemSearch)
    if stored is not None and context.has_tool(READ_ITEM):
        filters.append(HiddenTools({READ_ITEM, SEARCH_ITEMS}, stored.has_any))
    elif search is not None and context.has_tool(SEARCH_ITEMS):
        filters.append(HiddenTools({SEARCH_ITEMS}, search.has_items))
    return [*filters, *(each for make in offer.tool_filters for each in make(context))]


def _middleware(context: WorkerContext, offer: Offer) -> list[Middleware]:
    reader = context.pictures
    middleware: list[Middleware] = [TruncationNotes(), *([ItemPictures(reader)] if reader else [])]
    if context.name == "reporter":
        parallel = context.settings.parallel_steps
        return [*middleware, CheckedReport(offer.service(JudgeChoice), parallel=parallel)]
    if context.tools or context.name in offer.dynamic_tools:
        middleware += result_guards(context.model, offer.service(Redactor), offer.service(StoredResults))
    return [*middleware, *(each for make in offer.middleware for each in make(context))]


def _build_compact(role: Role, model: BaseChatModel, offer: Offer, settings: TeamSettings) -> Agent | None:
    missing = offer.unavailable.get(role.name, "there is no tool for it")
    match role.name:
        case "coder":
            return CompactCoder(model, offer.tool("coder", "python_repl_tool"))
        case "researcher":
            search, crawl = (offer.tool("researcher", name) for name in ("tavily_search", "crawl_tool"))
            return CompactResearcher(search, crawl, missing) if search or crawl else None
        case "browser":
            return PageReading(offer.tool("browser", "browser"), missing)
        case "reporter":
            return CompactReporter(model, offer.unavailable.get("researcher", ""))
        case _:
            return None


def reads_pages_only(worker: Agent | None) -> bool:
    """Return whether a browser worker only reads the page that its task names, as with a small model."""
    return isinstance(worker, PageReading)


STANDARD = Profile(
    "standard",
    _build_standard,
    sorts_by_grammar=False,
    plans_by_examples=False,
    judges_failures=True,
    rewrites_plans=True,
)
"""Models that follow instructions: ReAct agents with tools."""
COMPACT = Profile(
    "compact",
    _build_compact,
    sorts_by_grammar=True,
    plans_by_examples=True,
    judges_failures=False,
    rewrites_plans=False,
)
"""Models of a few billion parameters: grammars, worked examples, one program, one call."""
PROFILES: dict[ProfileName, Profile] = {profile.name: profile for profile in (STANDARD, COMPACT)}
