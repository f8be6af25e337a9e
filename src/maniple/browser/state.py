"""What an agent sees of its browser."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Tab:
    """An open tab."""

    tab_id: int
    """Stays its own for as long as the thread's browser is open, whatever is opened or closed beside it."""
    title: str
    url: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class ScrollInfo:
    """How much of the page lies outside the window, in CSS pixels."""

    pixels_above: int
    pixels_below: int


@dataclass(frozen=True, slots=True)
class Element:
    """A control that can be acted on, as a person would see it."""

    index: int
    role: str
    """Such as `button`, `link`, `input email`, `combobox`."""
    name: str
    """Its accessible name; "" when it has none."""
    is_new: bool = False
    """It was not there when the page was looked at before."""
    box: tuple[float, float, float, float] | None = None
    """Where it is in the window: left, top, right and bottom, from 0 to 1 each; None when it is outside."""


@dataclass(frozen=True, slots=True)
class BrowserState:
    """One look at the current tab. Everything in it but numbers is the page's word: untrusted."""

    snapshot_id: str
    """Names this look; the indexes are valid for what it showed."""
    url: str
    title: str
    tabs: tuple[Tab, ...]
    interactive_elements: str
    """Text and controls in reading order: `[33]<button>Submit</button>`, a new one as `*[34]<…>`."""
    elements: tuple[Element, ...]
    scroll_info: ScrollInfo
    viewport_height: int
    screenshot: bytes | None = None
    """The window as JPEG, each listed control in it marked with its index; None when not asked for."""
    notices: tuple[str, ...] = ()
    """What happened since the last look by itself: dialogs answered, downloads, obstacles cleared away."""

    def as_data(self) -> Mapping[str, Any]:
        """Return the state in the keys that OpenManus's browser tool gives, without the picture."""
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
