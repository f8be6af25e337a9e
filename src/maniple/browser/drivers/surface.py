"""A Playwright tab as clearing away obstacles needs it."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, TypeVar

from maniple.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import Frame, Page

_CLICK_MILLISECONDS = 1_000
_SCREENSHOT_MILLISECONDS = 3_000
_T = TypeVar("_T")


class PlaywrightSurface:
    """A `Surface`."""

    def __init__(self, page: "Page") -> None:
        self._page = page

    @property
    def document(self) -> "PlaywrightDocument":
        """See `Surface.document`."""
        return PlaywrightDocument(self._page.main_frame)

    async def press(self, key: str) -> None:
        """See `Surface.press`."""
        await _told(self._page.keyboard.press(key))

    async def click_at(self, x: float, y: float) -> None:
        """See `Surface.click_at`."""
        await _told(self._page.mouse.click(x, y))

    async def screenshot(self) -> bytes | None:
        """See `Surface.screenshot`."""
        from playwright.async_api import Error

        try:
            return await self._page.screenshot(
                type="jpeg", quality=60, scale="css", timeout=_SCREENSHOT_MILLISECONDS
            )
        except Error:
            return None


class PlaywrightDocument:
    """A `Document`."""

    def __init__(self, frame: "Frame") -> None:
        self._frame = frame

    async def evaluate(self, script: str, argument: Any) -> Any:
        """See `Document.evaluate`."""
        return await _told(self._frame.evaluate(script, argument))

    async def click(self, script: str, argument: Any) -> None:
        """See `Document.click`; what covers the element by then is not clicked instead."""
        from playwright.async_api import TimeoutError as NotClickableError

        handle = await _told(self._frame.evaluate_handle(script, argument))
        element = handle.as_element()
        if element is None:
            return
        try:
            await element.click(timeout=_CLICK_MILLISECONDS)
        except NotClickableError:
            return
        finally:
            await _told(handle.dispose())

    async def frame(self, script: str, argument: Any) -> "PlaywrightDocument | None":
        """See `Document.frame`."""
        handle = await _told(self._frame.evaluate_handle(script, argument))
        element = handle.as_element()
        inner = await _told(element.content_frame()) if element else None
        return PlaywrightDocument(inner) if inner else None


async def _told(call: Awaitable[_T]) -> _T:
    from playwright.async_api import Error

    try:
        return await call
    except Error as error:
        raise BrowserError("The page went away while it was looked at; look again.") from error
