"""Pictures of a tab's window."""

import asyncio
from typing import TYPE_CHECKING

from maniple.browser.drivers.looking import Look
from maniple.browser.marks import WIDEST, marked
from maniple.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import Page

_QUALITY = 80
_MILLISECONDS = 5_000


async def screenshot(tab: "Page", look: Look, *, marks: bool) -> bytes:
    """Return the window as JPEG, at most 1,280 pixels wide, with the indexes of `look` if `marks`.

    Raises:
        BrowserError: the page does not let itself be drawn in time.
    """
    from playwright.async_api import Error

    try:
        jpeg = await tab.screenshot(type="jpeg", quality=_QUALITY, scale="css", timeout=_MILLISECONDS)
    except Error as error:
        reason = str(error).partition("\n")[0]
        raise BrowserError(f"There is no picture of the page: {reason}.") from error
    if not marks and look.viewport_width <= WIDEST:
        return jpeg
    return await asyncio.to_thread(marked, jpeg, look.elements if marks else ())
