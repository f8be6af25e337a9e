"""A real browser for pages that need one."""

from maniple.browser.launch import open_browser
from maniple.browser.page import Browser, Link, PageText, Resolve, Unavailable

__all__ = ["Browser", "Link", "PageText", "Resolve", "Unavailable", "open_browser"]
