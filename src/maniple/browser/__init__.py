"""A real browser for pages that need one."""

from maniple.browser.launch import open_browser
from maniple.browser.page import Browser, Link, PageText
from maniple.types import Unavailable

__all__ = ["Browser", "Link", "PageText", "Unavailable", "open_browser"]
