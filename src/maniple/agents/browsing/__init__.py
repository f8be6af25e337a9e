"""Agents that work in the browser."""

from maniple.agents.browsing.build import BrowsingResources, browser_middleware, build_loop
from maniple.agents.browsing.loop import BrowserWorker, BrowsingLoop, BrowsingResult
from maniple.agents.browsing.trace import ReActStep

__all__ = [
    "BrowserWorker",
    "BrowsingLoop",
    "BrowsingResources",
    "BrowsingResult",
    "ReActStep",
    "browser_middleware",
    "build_loop",
]
