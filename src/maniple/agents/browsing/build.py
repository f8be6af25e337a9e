"""Assembly of the agents that work in the browser."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool

from maniple.agents.browsing.earlier_views import EarlierViews
from maniple.agents.browsing.loop import BrowsingLoop, PhasePlanner
from maniple.agents.browsing.middleware import (
    BrowsingLimits,
    ConclusionCheck,
    JsonStepAnswers,
    ReaderMiddleware,
    StaleActionGuard,
    StartPage,
    TreeOfThoughts,
)
from maniple.agents.browsing.trace import TraceMiddleware
from maniple.agents.browsing.view import POLICIES, PageViewMiddleware, is_blank, policy_of
from maniple.agents.middleware.limits import StepLimits
from maniple.agents.middleware.tool_availability import SearchlessTools
from maniple.agents.middleware.unfinished_answers import UnfinishedAnswers
from maniple.agents.react import ExtraMiddleware, build_react_graph
from maniple.browser import ACTIONS, ActionName
from maniple.config import BrowsingSettings
from maniple.tools.browser import browser_use_tool
from maniple.tools.interaction import inquiry_tools, terminate_tool
from maniple.tools.thread_browser import ThreadBrowser


@dataclass(frozen=True, slots=True)
class BrowsingResources:
    """The dependencies of the agents that work in the browser."""

    browser: ThreadBrowser
    settings: BrowsingSettings = field(default_factory=BrowsingSettings)
    searches: Sequence[BaseTool] = ()
    """The search tools that some modes offer beside the browser."""
    find_outage: Callable[[], Awaitable[str]] | None = None
    """Returns why no web search is possible now, "" if one is; None without a web search."""
    readers: Sequence[BaseTool] = ()
    """The tools that read downloads, sources and earlier views."""
    views: EarlierViews | None = None
    """Stores the views that are gone; None where nothing could read them."""


def build_loop(
    browsing: BrowsingResources,
    model: BaseChatModel,
    *,
    middleware: Sequence[AgentMiddleware[Any, Any]] = (),
    max_questions: int = 0,
    tool_seconds: float = 600,
) -> BrowsingLoop:
    """Build the loop for the mode and the strategy in the settings.

    `middleware` is put around each tool call.
    """
    browser, settings = browsing.browser, browsing.settings
    policy, questions = policy_of(settings), inquiry_tools(max_questions)
    tools = [
        browser_use_tool(browser, policy.actions),
        *(browsing.searches if policy.searches else ()),
        *browsing.readers,
        *questions,
        terminate_tool(),
    ]
    additions = ExtraMiddleware(
        around_answers=[
            BrowsingLimits(settings.max_iterations, settings.max_failures),
            TraceMiddleware(),
            # Inside the trace, which records the step; around the view, which would show an empty page.
            StartPage(),
            PageViewMiddleware(browser, policy, settings.vision, earlier=browsing.views),
            # Inside the view, so that it asks again about the same page.
            ConclusionCheck(),
            *([TreeOfThoughts()] if settings.strategy == "tot" else []),
            *_search_middleware(browsing, policy.actions),
        ],
        text_tools=JsonStepAnswers(),
        unfinished=UnfinishedAnswers("browsing", lambda: _has_page(browser)),
        around_calls=[*middleware, ReaderMiddleware(model), StaleActionGuard(browser)],
    )
    # One above `BrowsingLimits`, which counts over all phases and reports the reason.
    limits = StepLimits(settings.max_iterations + 1, tool_seconds=tool_seconds)
    agent = build_react_graph("browsing", model, tools, limits=limits, additions=additions)
    planner = PhasePlanner(model, policy.max_phases)
    return BrowsingLoop(agent, planner, settings, asks=bool(questions), reads=bool(browsing.readers))


def _has_page(browser: ThreadBrowser) -> bool:
    """Return whether the agent was shown an open page."""
    state = browser.last_state()
    return state is not None and not is_blank(state.url)


def browser_middleware(browsing: BrowsingResources, model: BaseChatModel) -> list[AgentMiddleware[Any, Any]]:
    """Return the middleware of an agent that uses the browser beside other tools."""
    settings = browsing.settings
    view = PageViewMiddleware(
        browsing.browser,
        POLICIES["auto"],
        settings.vision,
        turns=settings.shown_turns,
        earlier=browsing.views,
    )
    return [*_search_middleware(browsing), view, ReaderMiddleware(model), StaleActionGuard(browsing.browser)]


def _search_middleware(
    browsing: BrowsingResources, actions: Sequence[ActionName] | None = None
) -> list[AgentMiddleware[Any, Any]]:
    """Return the middleware that offers no search of the browser's agent while none is answered."""
    if browsing.find_outage is None:
        return []
    offered, searching = actions or browsing.browser.actions, ACTIONS.of_kinds("search")
    without = browser_use_tool(browsing.browser, [name for name in offered if name not in searching])
    hidden = [tool.name for tool in browsing.searches]
    return [SearchlessTools({without.name: without}, hidden, browsing.find_outage)]
