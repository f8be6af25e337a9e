"""A team of agents as a LangGraph workflow: serve it, talk to it in a terminal, or embed it.

from langchain_core.messages import HumanMessage
from maniple import load_settings, open_team, stream_run

async with open_team(load_settings()) as team:
    async for event in stream_run(team, [HumanMessage("1+3=?")]):
        print(event.type, event.data())
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maniple.agents.offers import Offer
    from maniple.agents.team_models import LineProgress
    from maniple.app import open_team
    from maniple.browser import Action, ActionResult, Browser, BrowserState, Page, PageServices, open_browser
    from maniple.capabilities.base import Capability, CapabilityContext
    from maniple.config import Settings, load_settings
    from maniple.errors import (
        BrowserError,
        ConfigError,
        ManipleError,
        ModelError,
        PlanError,
        ToolFailure,
        Unavailable,
    )
    from maniple.events import Event, translate
    from maniple.graph import RunOptions, State, Team, build_graph
    from maniple.llms import ChatModels
    from maniple.llms.embedded import Progress
    from maniple.runs.stream_events import TeamResult, TeamTransformer, report_stream_events
    from maniple.runs.turn import stream_run

# Resolved at first use: the agent framework takes a second to import, which `maniple --help` need not pay.
_HOMES = {
    "Action": "maniple.browser",
    "ActionResult": "maniple.browser",
    "PageServices": "maniple.browser",
    "Browser": "maniple.browser",
    "BrowserError": "maniple.errors",
    "BrowserState": "maniple.browser",
    "Capability": "maniple.capabilities.base",
    "CapabilityContext": "maniple.capabilities.base",
    "ChatModels": "maniple.llms",
    "ConfigError": "maniple.errors",
    "Event": "maniple.events",
    "LineProgress": "maniple.agents.team_models",
    "ManipleError": "maniple.errors",
    "ModelError": "maniple.errors",
    "PlanError": "maniple.errors",
    "Offer": "maniple.agents.offers",
    "Page": "maniple.browser",
    "Progress": "maniple.llms.embedded",
    "RunOptions": "maniple.graph",
    "Settings": "maniple.config",
    "State": "maniple.graph",
    "Team": "maniple.graph",
    "TeamResult": "maniple.runs.stream_events",
    "TeamTransformer": "maniple.runs.stream_events",
    "ToolFailure": "maniple.errors",
    "Unavailable": "maniple.errors",
    "build_graph": "maniple.graph",
    "load_settings": "maniple.config",
    "open_browser": "maniple.browser",
    "open_team": "maniple.app",
    "report_stream_events": "maniple.runs.stream_events",
    "stream_run": "maniple.runs.turn",
    "translate": "maniple.events",
}

__all__ = [
    "Action",
    "ActionResult",
    "Browser",
    "BrowserError",
    "BrowserState",
    "Capability",
    "CapabilityContext",
    "ChatModels",
    "ConfigError",
    "Event",
    "LineProgress",
    "ManipleError",
    "ModelError",
    "Offer",
    "Page",
    "PageServices",
    "PlanError",
    "Progress",
    "RunOptions",
    "Settings",
    "State",
    "Team",
    "TeamResult",
    "TeamTransformer",
    "ToolFailure",
    "Unavailable",
    "build_graph",
    "load_settings",
    "open_browser",
    "open_team",
    "report_stream_events",
    "stream_run",
    "translate",
]


def __getattr__(name: str) -> Any:
    if home := _HOMES.get(name):
        return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
