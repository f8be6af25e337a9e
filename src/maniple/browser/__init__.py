"""A real browser: for pages that need one, and for agents that work in it."""

from maniple.browser.actions import ACTIONS, Action, ActionName, ActionResult
from maniple.browser.launch import open_browser, open_browser_if_any
from maniple.browser.page import Aids, Browser, Found, Link, Page, PageSource, PageText
from maniple.browser.state import BrowserState, Element, ScrollInfo, Tab
from maniple.types import Unavailable

__all__ = [
    "ACTIONS",
    "Action",
    "ActionName",
    "ActionResult",
    "Aids",
    "Browser",
    "BrowserState",
    "Element",
    "Found",
    "Link",
    "Page",
    "PageSource",
    "PageText",
    "ScrollInfo",
    "Tab",
    "Unavailable",
    "open_browser",
    "open_browser_if_any",
]
