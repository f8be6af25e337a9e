"""The HTML page of one run: its request, its result and all its steps."""

from maniple.run_page.page import policy, render_run_page

__all__ = ["policy", "render_run_page"]
