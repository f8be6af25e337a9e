"""The browser as the crawler uses it."""

from maniple.browser import Browser
from maniple.crawler import FetchedDocument, PageRenderer
from maniple.types import Unavailable


def rendering(browser: Browser | Unavailable) -> PageRenderer | None:
    """What opens pages that are empty without scripts; None when there is no browser."""
    if isinstance(browser, Unavailable):
        return None

    async def render(url: str, /) -> FetchedDocument:
        page = await browser.source(url)
        return FetchedDocument(page.url, "text/html", "utf-8", page.html.encode("utf-8", "replace"))

    return render
