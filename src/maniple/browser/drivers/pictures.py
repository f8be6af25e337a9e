"""Pictures of a tab's window."""

import asyncio
from typing import TYPE_CHECKING

from maniple.browser.drivers.looking import Look
from maniple.browser.marks import WIDEST, marked

if TYPE_CHECKING:
    from playwright.async_api import Page

_QUALITY = 80
_MILLISECONDS = 5_000


async def screenshot(tab: "Page", look: Look, *, marks: bool) -> bytes:
    """Return the window as JPEG, at most 1,280 pixels wide, with the indexes of `look` if `marks`.

    Raises:
        playwright.async_api.Error: the page does not let itself be drawn in time.
    """
    jpeg = await tab.screenshot(type="jpeg", quality=_QUALITY, scale="css", timeout=_MILLISECONDS)
    if not marks and look.viewport_width <= WIDEST:
        return jpeg
    return await asyncio.to_thread(marked, jpeg, look.elements if marks else ())
