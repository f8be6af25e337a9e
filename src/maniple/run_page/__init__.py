"""The page that shows a run after its end: what was asked, what came of it, and every step on the way."""

from maniple.run_page.page import page_of, policy

__all__ = ["page_of", "policy"]
