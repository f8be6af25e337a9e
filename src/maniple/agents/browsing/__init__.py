"""Agents that work in the browser."""

from maniple.agents.browsing.build import Browsing, beside_other_tools, build_loop
from maniple.agents.browsing.loop import Browsed, BrowsingLoop
from maniple.agents.browsing.steps import ReActStep
from maniple.agents.browsing.worker import BrowserWorker

__all__ = [
    "Browsed",
    "BrowserWorker",
    "Browsing",
    "BrowsingLoop",
    "ReActStep",
    "beside_other_tools",
    "build_loop",
]
