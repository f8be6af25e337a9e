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


class Browser(Protocol):
    """Opens pages."""

    async def read(self, url: str, *, thread: str) -> PageText:
        """Open the http or https page at `url` for `thread` and read it; nothing is shared between threads.

        Raises:
            FetchError: the address is no public web page.
            BrowserError: the page did not load, or the browser failed.
        """
        ...
