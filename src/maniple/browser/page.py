"""The interface of a browser: its pages, their state, and the services that a page uses."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from maniple.browser.actions import Action, ActionName, ActionResult


@dataclass(frozen=True, slots=True)
class Tab:
    """An open tab."""

    tab_id: int
    """Does not change while the thread's browser is open."""
    title: str
    url: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class ScrollInfo:
    """The parts of the page above and below the window, in CSS pixels."""

    pixels_above: int
    pixels_below: int


@dataclass(frozen=True, slots=True)
class Element:
    """A control that actions can be performed on."""

    index: int
    role: str
    """Such as `button`, `link`, `input email`, `combobox`."""
    name: str
    """Its accessible name; "" when it has none."""
    is_new: bool = False
    """Whether it was missing in the previous state of the page."""
    box: tuple[float, float, float, float] | None = None
    """Left, top, right and bottom in the window, from 0 to 1 each; None outside of it."""


@dataclass(frozen=True, slots=True)
class BrowserState:
    """The state of the current tab. All text in it comes from the page and is untrusted."""

    snapshot_id: str
    """Identifies this state, to which the indexes belong."""
    url: str
    title: str
    tabs: tuple[Tab, ...]
    interactive_elements: str
    """Text and controls in reading order: `[33]<button>Submit</button>`, a new one as `*[34]<…>`."""
    elements: tuple[Element, ...]
    scroll_info: ScrollInfo
    viewport_height: int
    screenshot: bytes | None = None
    """The window as JPEG with the index on each listed control; None if it was not requested."""
    notices: tuple[str, ...] = ()
    """What happened since the last state: answered dialogs, downloads, cleared overlays."""

    def as_data(self) -> Mapping[str, Any]:
        """Return the state with the keys of OpenManus's browser tool, without the picture."""
        return {
            "url": self.url,
            "title": self.title,
            "tabs": [
                {"tab_id": tab.tab_id, "url": tab.url, "title": tab.title, "is_current": tab.is_current}
                for tab in self.tabs
            ],
            "interactive_elements": self.interactive_elements,
            "scroll_info": {
                "pixels_above": self.scroll_info.pixels_above,
                "pixels_below": self.scroll_info.pixels_below,
            },
            "viewport_height": self.viewport_height,
        }


@dataclass(frozen=True, slots=True)
class Link:
    """A link on a page."""

    text: str
    url: str
    """Absolute."""


@dataclass(frozen=True, slots=True)
class PageText:
    """The text of a rendered page, without hidden text."""

    url: str
    """The address after redirects."""
    title: str
    text: str
    links: tuple[Link, ...]
    status: int | None = None
    """The HTTP status, if known."""


@dataclass(frozen=True, slots=True)
class PageSource:
    """The HTML of a page after its scripts ran, cut to two million characters."""

    url: str
    """The address after redirects."""
    html: str


@dataclass(frozen=True, slots=True)
class PagePicture:
    """A picture of the window as JPEG, without marks."""

    url: str
    title: str
    content: bytes


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A result of `PageServices.search`."""

    title: str
    url: str
    content: str = ""


@dataclass(frozen=True, slots=True)
class PageServices:
    """Functions that some actions need.

    Without its function, an action fails with a message that states this.
    """

    search: Callable[[str], Awaitable[Sequence[FoundPage]]] | None = None
    """Return results for a query, best first; raises `SearchError`."""
    extract: Callable[[str, str], Awaitable[str]] | None = None
    """Called with (goal, Markdown of a page); returns what answers the goal. Default: the Markdown itself."""
    save_file: Callable[[str, Path], Awaitable[str]] | None = None
    """Called with (suggested name, temporary file) of a download; returns the path to report."""
    save_picture: Callable[[PagePicture], Awaitable[str]] | None = None
    """Store a picture of the window; return the path to report. Raises `FileError`."""
    open_file: Callable[[str], Awaitable[Path]] | None = None
    """Return the file for an upload that a path names; raises `FileError`."""
    choose: Callable[[str, Sequence[str], bytes | None], Awaitable[int | None]] | None = None
    """Called with (text of an overlay, ways to dismiss it, screenshot); returns a position or None."""


class Page(Protocol):
    """A thread's tabs and which of them is current. One call runs at a time; others wait."""

    async def observe(self, *, screenshot: bool = True) -> BrowserState:
        """Return the state of the current tab; indexes of earlier states are no longer valid.

        Raises:
            BrowserError: the browser failed; the next call starts a new one.
        """
        ...

    async def act(self, action: Mapping[str, Any] | Action) -> ActionResult:
        """Perform an action, such as `{"action": "click_element", "index": 3}`.

        An index is one of the last state. If the element has changed since, the action fails.

        Raises:
            BrowserError: the action failed; the text is for the model.
        """
        ...

    async def has_changed(self) -> bool:
        """Return whether the address, the tab or the controls differ from the last state.

        Values and states of controls do not matter. The last state stays valid.

        Raises:
            BrowserError: the browser failed.
        """
        ...

    async def read(self) -> PageText:
        """Return the text of the current tab.

        Raises:
            BrowserError: the browser failed.
        """
        ...

    async def aclose(self) -> None:
        """Close the thread's tabs and delete its cookies, unless `browser.keep_storage` is set."""
        ...


class Browser(Protocol):
    """Opens pages."""

    @property
    def actions(self) -> tuple[ActionName, ...]:
        """The registered actions that its pages perform."""
        ...

    async def page(self, thread: str, services: PageServices | None = None) -> Page:
        """Return the tabs of a thread; nothing starts before the first call on them.

        The same thread gets the same tabs again. Threads share neither tabs nor cookies.
        """
        ...

    async def read(self, url: str, *, thread: str) -> PageText:
        """Open the http or https page at `url` for `thread` and return its text.

        Raises:
            FetchError: the address is not a public web page.
            BrowserError: the page did not load, or the browser failed.
        """
        ...

    async def source(self, url: str) -> PageSource:
        """Open the http or https page at `url`, for no thread, and return its HTML; raises as `read`."""
        ...

    async def print(self, html: str) -> bytes:
        """Print an HTML document as PDF. Its CSS sets the paper; no script runs and nothing is loaded.

        Raises:
            BrowserError: the browser cannot print, failed, or took longer than `browser.timeout_seconds`.
        """
        ...

    async def draw(self, page: Path, sources: Sequence[str], scale: int) -> list[bytes]:
        """Draw Mermaid diagrams as PNG with the library of the built `page`, a folder; load nothing else.

        A pixel of a diagram is `scale` pixels wide. A diagram that cannot be drawn is empty.

        Raises:
            BrowserError: the browser cannot draw or failed.
        """
        ...

    async def forget(self, thread: str) -> None:
        """Close a thread's tabs and delete its stored cookies and local storage."""
        ...
