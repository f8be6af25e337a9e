"""What a browser is to the rest of the house."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from maniple.browser.actions import Action, ActionResult
from maniple.browser.state import BrowserState


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


@dataclass(frozen=True, slots=True)
class Found:
    """A result of a search."""

    title: str
    url: str
    content: str = ""


@dataclass(frozen=True, slots=True)
class Aids:
    """What a page needs from others for some of its actions; without one, the action says so."""

    search: Callable[[str], Awaitable[Sequence[Found]]] | None = None
    """Results for a query, best first; raises `SearchError`."""
    extract: Callable[[str, str], Awaitable[str]] | None = None
    """What answers a goal, out of a page: called with (goal, Markdown). Without it the Markdown is given."""
    keep_file: Callable[[str, Path], Awaitable[str]] | None = None
    """Takes over a download: called with (suggested name, temporary file); returns the path to tell."""
    open_file: Callable[[str], Awaitable[Path]] | None = None
    """The file that a path names for an upload; raises `FileError`. Without it nothing is uploaded."""
    choose: Callable[[str, Sequence[str], bytes | None], Awaitable[int | None]] | None = None
    """Which of some ways to clear an obstacle away: (what it says, ways, screenshot) to a place, or None."""


class Page(Protocol):
    """A thread's browser: its tabs, one of which is current. One call at a time; others wait."""

    async def observe(self, *, screenshot: bool = True) -> BrowserState:
        """Look at the current tab; indexes of earlier looks are no longer valid.

        Raises:
            BrowserError: the browser failed; the next call starts a new one.
        """
        ...

    async def act(self, action: Mapping[str, Any] | Action) -> ActionResult:
        """Do one thing, such as `{"action": "click_element", "index": 3}`.

        An index is one of the last look. The element of a page that has changed since is not acted on.

        Raises:
            BrowserError: it could not be done; in the contract's words, for the model to read.
        """
        ...

    async def read(self) -> PageText:
        """Return the text of the current tab, as a person would read it.

        Raises:
            BrowserError: the browser failed.
        """
        ...

    async def aclose(self) -> None:
        """Close the thread's tabs; its cookies are forgotten, unless `browser.keep_storage` is set."""
        ...


class Browser(Protocol):
    """Opens pages."""

    async def page(self, thread: str, aids: Aids | None = None) -> Page:
        """Give a thread's own tabs, to be looked at and acted in; nothing starts before the first call on it.

        The same thread gets the same tabs again. Other threads share neither tabs nor cookies with it.
        """
        ...

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

    async def print(self, html: str) -> bytes:
        """Print an HTML document of ours as PDF, which says itself what paper; no script runs, nothing loads.

        Raises:
            BrowserError: the browser cannot print, failed, or took longer than `browser.timeout_seconds`.
        """
        ...

    async def forget(self, thread: str) -> None:
        """Close a thread's tabs, and remove what `browser.keep_storage` kept of it."""
        ...
