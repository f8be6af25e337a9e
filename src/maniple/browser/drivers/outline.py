"""For a page that breaks the indexer: Playwright's outline of it, what assistive technology is told."""

import re
from typing import TYPE_CHECKING

from maniple.browser.drivers.frames import PageSeen, Piece, Place
from maniple.browser.listing import Row
from maniple.browser.words import safe

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Page

_MILLISECONDS = 5_000
_MOST_CHARACTERS = 200_000
_NAME = 120
_TEXT = 300
_ROLES = re.compile(
    "button|checkbox|combobox|link|listbox|menuitem.*|option|radio|searchbox|slider|spinbutton|switch|tab|textbox"
    "|treeitem"
)
_STATES = frozenset(("checked", "disabled", "expanded", "pressed", "selected"))
_LINE = re.compile(
    r"""\s*-\ '?(?P<role>[a-z]+)  (?:\ "(?P<name>(?:[^"\\]|\\.)*)")?  (?P<marks>(?:\ \[[^\]\[]*\])*)
    '?:?  (?:\ (?P<text>.*))?""",
    re.VERBOSE,
)
_MARK = re.compile(r"\[(\w+)(?:=(\w+))?\]")


async def outlined(tab: "Page", nonce: str) -> PageSeen:
    """Look at `tab` by its outline: the whole page, in no window.

    Raises:
        playwright.async_api.Error: the page does not answer.
    """
    pieces = []
    for number, line in enumerate(await _lines(tab)):
        if piece := _piece(tab, number, line, nonce):
            pieces.append(piece)
    size = tab.viewport_size or {"width": 1, "height": 1}
    return PageSeen(nonce, pieces, 0, 0, size["width"], size["height"])


async def given(tab: "Page", place: Place) -> "ElementHandle | None":
    """The element at `place`, if the page's outline has it as it was shown.

    Raises:
        playwright.async_api.Error: the page does not answer.
    """
    if place.outlined not in map(str.strip, await _lines(tab)):
        return None
    return await tab.query_selector(f"aria-ref={place.id}")


async def _lines(tab: "Page") -> list[str]:
    outline = await tab.aria_snapshot(mode="ai", timeout=_MILLISECONDS)
    return outline[:_MOST_CHARACTERS].splitlines()


def _piece(tab: "Page", number: int, line: str, nonce: str) -> Piece | None:
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    marks = dict(_MARK.findall(found["marks"]))
    name, text = (found["name"] or "").replace('\\"', '"'), (found["text"] or "").strip("\"'")
    if "ref" not in marks or not (_ROLES.fullmatch(found["role"]) or "cursor" in marks):
        words = safe(name or text, _TEXT)
        return Piece(Row(number, words)) if words else None
    states = tuple(state for state in marks if state in _STATES)
    value = (f'value="{safe(text, _NAME)}"',) if text and name else ()
    row = Row(number, safe(name or text, _NAME), role=found["role"], details=(*value, *states))
    return Piece(row, Place(tab.main_frame, nonce, marks["ref"], None, line.strip()))
