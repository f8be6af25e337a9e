"""Pages made up by a test, in a real Chromium and without a server."""

from dataclasses import dataclass, field

from playwright.async_api import ElementHandle, Page, Route

from maniple.browser.drivers.observation import PageObservation, find_element, observe_page
from maniple.browser.page import Element

HOME = "http://site.test/"
TOKENS = 4_000


@dataclass
class Site:
    """A tab that shows what a test wants to be seen."""

    tab: Page
    pages: dict[str, str] = field(default_factory=dict)
    seen: PageObservation | None = None

    async def show(self, html: str, **frames: str) -> PageObservation:
        """Open a page; a name in `frames` is the host `http://NAME.test/`."""
        self.pages = {"site": html, **frames}
        self.seen = None
        await self.tab.goto(HOME)
        return await self.look()

    async def look(self, tokens: int = TOKENS) -> PageObservation:
        self.seen = await observe_page(self.tab, self.seen, tokens=tokens)
        return self.seen

    async def find(self, name: str) -> ElementHandle:
        assert self.seen is not None
        return await find_element(self.seen, named(self.seen, name).index)

    async def answer(self, route: Route) -> None:
        host = route.request.url.split("/")[2].partition(".")[0]
        body = self.pages.get(host, "")
        await route.fulfill(body=f"<!doctype html><meta charset=utf-8>{body}", content_type="text/html")


def named(look: PageObservation, name: str) -> Element:
    """The one control that has this name."""
    (element,) = [element for element in look.elements if element.name == name]
    return element


def shown(look: PageObservation) -> list[str]:
    """The controls as a model reads them, without their indexes."""
    return [f"{element.role}: {element.name}" for element in look.elements]
