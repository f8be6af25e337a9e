"""Banners and windows that cover a page: telling them from the page's own, and getting past them."""

from maniple.browser.obstacles.choice import Choose
from maniple.browser.obstacles.clearing import COOLDOWN_SECONDS, THRESHOLD, Clearing
from maniple.browser.obstacles.surface import Document, Surface

__all__ = ["COOLDOWN_SECONDS", "THRESHOLD", "Choose", "Clearing", "Document", "Surface"]
