"""A browser inside a sandbox, over the HTTP API that OpenManus's sandbox tool speaks."""

from maniple.browser.drivers.sandbox.browser import SandboxBrowser

__all__ = ["SandboxBrowser"]
