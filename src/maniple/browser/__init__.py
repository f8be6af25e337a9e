"""A real browser for pages that need one."""

from maniple.browser.launch import open_browser
from maniple.browser.page import Browser, Link, PageSource, PageText
from maniple.types import Unavailable

__all__ = ["Browser", "Link", "PageSource", "PageText", "Unavailable", "open_browser"]
