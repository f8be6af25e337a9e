"""Looking at pages with our own indexer."""

from typing import TYPE_CHECKING

from maniple.browser.drivers import frames, looking, pictures

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Page


class OwnSight:
    """See `Sight`."""

    def recorder(self) -> str:
        """See `Sight.recorder`."""
        return frames.recorder()

    async def look(self, tab: "Page", earlier: looking.Look | None, *, tokens: int) -> looking.Look:
        """See `Sight.look`."""
        return await looking.look(tab, earlier, tokens=tokens)

    async def find(self, look: looking.Look, index: int) -> "ElementHandle":
        """See `Sight.find`."""
        return await looking.find(look, index)

    async def screenshot(self, tab: "Page", look: looking.Look, *, marks: bool) -> bytes:
        """See `Sight.screenshot`."""
        return await pictures.screenshot(tab, look, marks=marks)
