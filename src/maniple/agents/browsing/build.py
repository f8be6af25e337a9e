"""Put a call of the browser together for one model."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool

from maniple.agents.browsing.branches import Branches
from maniple.agents.browsing.conclusion import Conclusion
from maniple.agents.browsing.json_steps import JsonSteps
from maniple.agents.browsing.limits import BrowsingLimits
from maniple.agents.browsing.loop import BrowsingLoop
from maniple.agents.browsing.one_action import OneAction
from maniple.agents.browsing.phases import PhasePlanner
from maniple.agents.browsing.policy import POLICIES, policy_of
from maniple.agents.browsing.reading import Reading
from maniple.agents.browsing.stepping import Stepping
from maniple.agents.browsing.view import View
from maniple.agents.middleware.limits import StepLimits
from maniple.agents.react import ExtraMiddleware, build_react_graph
from maniple.config import BrowsingSettings
from maniple.tools.browser_use import browser_use_tool
from maniple.tools.browser_window import Window
from maniple.tools.interaction import inquiry_tools, terminate_tool


@dataclass(frozen=True, slots=True)
class Browsing:
    """What the agents that work in the browser need of the house."""

    window: Window
    settings: BrowsingSettings = field(default_factory=BrowsingSettings)
    searches: Sequence[BaseTool] = ()
    """The search that modes offer beside the browser."""


def build_loop(
    browsing: Browsing,
    model: BaseChatModel,
    *,
    middleware: Sequence[AgentMiddleware[Any, Any]] = (),
    max_questions: int = 0,
    tool_seconds: float = 600,
) -> BrowsingLoop:
    """Build what carries out an instruction in the mode and by the strategy that are set.

    `middleware` is around what each call does.
    """
    window, settings = browsing.window, browsing.settings
    policy, questions = policy_of(settings), inquiry_tools(max_questions)
    tools = [
        browser_use_tool(window, policy.actions),
        *(browsing.searches if policy.searches else ()),
        *questions,
        terminate_tool(),
    ]
    additions = ExtraMiddleware(
        around_answers=[
            BrowsingLimits(settings.max_iterations, settings.max_failures),
            Stepping(),
            View(window, policy, settings.vision),
            # Asks about the page that the answer was given on.
            Conclusion(),
            *([Branches()] if settings.strategy == "tot" else []),
        ],
        text_tools=JsonSteps(),
        around_calls=[*middleware, Reading(model), OneAction()],
    )
    # One more: the loop's own limit has its own words, and counts over all phases.
    limits = StepLimits(settings.max_iterations + 1, tool_seconds=tool_seconds)
    agent = build_react_graph("browsing", model, tools, limits=limits, additions=additions)
    planner = PhasePlanner(model, policy.most_phases)
    return BrowsingLoop(agent, planner, settings, asks=bool(questions))


def beside_other_tools(browsing: Browsing, model: BaseChatModel) -> list[AgentMiddleware[Any, Any]]:
    """Return what an agent has that works in the browser among other things."""
    settings = browsing.settings
    view = View(browsing.window, POLICIES["auto"], settings.vision, turns=settings.shown_turns)
    return [view, Reading(model), OneAction()]
