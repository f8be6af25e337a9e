"""What a browser is to the rest of the house."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Link:
    """A link on a page."""

    text: str
    url: str
    """Absolute."""


@dataclass(frozen=True, slots=True)
class PageText:
    """A page as a person would read it: rendered, scripts run, hidden text left out."""

    url: str
    """Where the browser ended, after redirects."""
    title: str
    text: str
    links: tuple[Link, ...]
    status: int | None = None
    """The HTTP status, when the server gave one."""


@dataclass(frozen=True, slots=True)
class PageSource:
    """A page as HTML, after its scripts ran; cut where it is endless."""

    url: str
    """Where the browser ended, after redirects."""
    html: str


class Browser(Protocol):
    """Opens pages."""

    async def read(self, url: str, *, thread: str) -> PageText:
        """Open the http or https page at `url` for `thread` and read it; nothing is shared between threads.

        Raises:
            FetchError: the address is no public web page.
            BrowserError: the page did not load, or the browser failed.
        """
        ...

    async def source(self, url: str) -> PageSource:
        """Open the http or https page at `url`, for no thread, and give its HTML; fails as `read`."""
        ...
