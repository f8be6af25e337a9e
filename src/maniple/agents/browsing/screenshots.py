"""Screenshots that stay: each one that an agent asks for, and the last view of a task in the browser.

They become pictures of the thread, which other members open. What the model is shown with each observation is
not stored with them: it is many pictures, with marks that mean nothing to anybody else.
"""

import asyncio
import logging
from dataclasses import replace
from typing import Any

from maniple.agents.browsing.loop import BrowsingLoop, BrowsingResult
from maniple.agents.browsing.view import is_blank
from maniple.agents.task import current_task
from maniple.browser import PagePicture
from maniple.errors import BrowserError, BudgetExhausted, FileError, ModelError
from maniple.scope.run_scope import run_key
from maniple.tools.items import ThreadItems
from maniple.tools.picture_origins import PictureOrigin
from maniple.tools.thread_browser import ThreadBrowser

TAKE_SCREENSHOT = "take_screenshot"
LAST_VIEW_SECONDS = 10.0
"""The time limit of the last view; after it, the task ends without."""
_log = logging.getLogger(__name__)


class ScreenshotSaver:
    """Stores pictures of the window as items of the current thread, with address, run and step."""

    def __init__(self, items: ThreadItems) -> None:
        self._items = items

    async def __call__(self, picture: PagePicture) -> str:
        """Return the path; raises `FileError` if it is no picture, or if there is no room for it."""
        origin = PictureOrigin("screenshot", picture.url, picture.title, run_key(), _current_step())
        path = await self._items.store_picture(picture.title or "screenshot", picture.content, origin)
        if not path:
            raise FileError("The browser gave no picture that can be read.")
        return path


def _current_step() -> int:
    try:
        return current_task().step
    except LookupError:  # called outside of a step
        return 0


class LastViews:
    """Carries out instructions by a loop, and stores what the browser shows at the end of each."""

    def __init__(self, loop: BrowsingLoop, browser: ThreadBrowser) -> None:
        self._loop = loop
        self._browser = browser

    async def browse(self, instruction: str) -> BrowsingResult:
        """See `BrowsingLoop.browse`; the text says so if the last view could not be stored."""
        try:
            result = await self._loop.browse(instruction)
        except (BudgetExhausted, ModelError):
            await self._store()
            raise
        reason = await self._store()
        return replace(result, text=f"{result.text}\n\n[{reason}]") if reason else result

    async def _store(self) -> str:
        """Store the view; return why it is not stored, "" if it is or if there is nothing to see."""
        state = self._browser.last_state()
        if state is None or is_blank(state.url) or TAKE_SCREENSHOT not in self._browser.actions:
            return ""
        action: dict[str, Any] = {"action": TAKE_SCREENSHOT}
        try:
            async with asyncio.timeout(LAST_VIEW_SECONDS):
                await self._browser.act(action)
        except (BrowserError, TimeoutError) as error:
            # A browser that has ended shows nothing; a full workspace is for the user to know.
            _log.info("The last view of the browser is not stored: %s", error)
            if isinstance(error.__cause__, FileError):
                return f"The last view of the browser is not stored as a picture: {error.__cause__}"
        return ""
