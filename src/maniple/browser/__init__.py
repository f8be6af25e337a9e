"""A real browser: for pages that need one, and for agents that work in it."""

from maniple.browser.actions import ACTIONS, Action, ActionName, ActionResult, action
from maniple.browser.drivers import actions as _actions  # noqa: F401 - registers the built-in actions
from maniple.browser.drivers.session import BrowserStorage
from maniple.browser.launch import open_browser
from maniple.browser.page import (
    Browser,
    BrowserState,
    Element,
    FoundPage,
    Link,
    Page,
    PagePicture,
    PageServices,
    PageSource,
    PageText,
    ScrollInfo,
    Tab,
)

__all__ = [
    "ACTIONS",
    "Action",
    "ActionName",
    "ActionResult",
    "Browser",
    "BrowserState",
    "BrowserStorage",
    "Element",
    "FoundPage",
    "Link",
    "Page",
    "PagePicture",
    "PageServices",
    "PageSource",
    "PageText",
    "ScrollInfo",
    "Tab",
    "action",
    "open_browser",
]
