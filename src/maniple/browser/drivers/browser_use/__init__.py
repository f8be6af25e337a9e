"""browser-use's view of pages, its clicks and its typing; Playwright, over the same Chromium, for the rest.

`maniple[browser-use]`. The library itself runs in a process of its own: see `worker.py`.
"""

from maniple.browser.drivers.browser_use.acts import acts_of
from maniple.browser.drivers.browser_use.contexts import WatchedChromium
from maniple.browser.drivers.browser_use.sight import BrowserUseSight

__all__ = ["BrowserUseSight", "WatchedChromium", "acts_of"]
