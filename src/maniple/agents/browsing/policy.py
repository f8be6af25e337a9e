"""What each mode of the browser plans, sees and is offered (seed 003)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from maniple.browser import ACTIONS, ActionName, BrowserState
from maniple.config.browser_settings import BrowserMode, BrowsingSettings

_MOVES: tuple[ActionName, ...] = (
    "go_to_url",
    "open_tab",
    "go_back",
    "refresh",
    "click_element",
    "scroll_down",
    "scroll_up",
    "scroll_to_text",
    "switch_tab",
    "close_tab",
    "wait",
)
_INPUTS: tuple[ActionName, ...] = (
    "input_text",
    "send_keys",
    "get_dropdown_options",
    "select_dropdown_option",
)
_FEW_ELEMENTS = 3
"""A page that lists fewer is drawn rather than written."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What holds in one mode."""

    most_phases: int
    """Of a plan; 1 is none."""
    vision: Literal["optional", "enabled"]
    """`optional`: a picture only of pages that have hardly any text or control."""
    actions: tuple[ActionName, ...]
    searches: bool
    """Whether there is a search beside the browser."""

    def shows(self, state: BrowserState, vision: str) -> bool:
        """Say whether a model that sees is shown the picture of a page; `vision` is the setting."""
        if vision == "never" or is_blank(state.url):
            return False
        return vision == "always" or self.vision == "enabled" or len(state.elements) < _FEW_ELEMENTS


POLICIES: Mapping[BrowserMode, Policy] = {
    "navigate": Policy(3, "optional", (*_MOVES, "web_search"), searches=False),
    "execute": Policy(1, "enabled", (*_MOVES, *_INPUTS), searches=False),
    "scrape": Policy(1, "optional", (*_MOVES, "extract_content"), searches=False),
    "research": Policy(1, "enabled", ACTIONS, searches=True),
    "auto": Policy(8, "enabled", ACTIONS, searches=True),
}


def policy_of(settings: BrowsingSettings) -> Policy:
    """Return what holds in the mode that is set."""
    return POLICIES[settings.mode]


def is_blank(url: str) -> bool:
    """Say whether nothing is open there."""
    return url.partition("#")[0] in ("", "about:blank", "about:newtab", "chrome://newtab/")
