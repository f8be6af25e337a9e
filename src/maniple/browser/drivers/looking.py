"""Looking at a tab: what of it an agent sees, and the elements behind the indexes that it was shown."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import TYPE_CHECKING

from maniple.browser.drivers.frames import BrokenIndexer, PageSeen, Piece, Place, asked, seen_in
from maniple.browser.drivers.outline import given, outlined
from maniple.browser.listing import chosen, text_of
from maniple.browser.state import Element, ScrollInfo
from maniple.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Page

_REASONS = {
    "page": "the page has been loaded anew or left since it was shown; look at the current state.",
    "gone": "it has gone from the page, or was drawn anew, since it was shown; look at the current state.",
    "moved": "it has moved to another place of the page since it was shown; look at the current state.",
    "changed": "it has become something else since it was shown; look at the current state.",
}


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen of a tab at one time."""

    snapshot_id: str
    text: str
    elements: tuple[Element, ...]
    scroll_info: ScrollInfo
    viewport_width: int
    viewport_height: int
    document: str
    """Which page it was; one that was loaded again is another."""
    next_index: int
    """No number is given twice, so that one of an earlier look never means another element."""
    places: Mapping[int, Place] = field(repr=False, default_factory=dict)


async def look(tab: "Page", earlier: Look | None = None, *, tokens: int) -> Look:
    """Look at `tab` and describe it in about `tokens` tokens; indexes of `earlier` are no longer valid.

    What `earlier` did not show of the same page is told to be new; what it showed keeps its index.

    Raises:
        playwright.async_api.Error: the page does not answer, or went on to another one meanwhile.
    """
    nonce = token_hex(6)
    try:
        page = await seen_in(tab.main_frame, nonce)
    except BrokenIndexer:
        page = await outlined(tab, nonce)
    places = {id(piece.row): piece.place for piece in page.pieces}
    rows = chosen([piece.row for piece in page.pieces], tokens)
    shown = _numbered([Piece(row, places.get(id(row))) for row in rows], page.document, earlier)
    controls = [(piece.row, piece.place) for piece in shown if piece.place is not None]
    return Look(
        snapshot_id=nonce,
        text=text_of(piece.row for piece in shown),
        elements=tuple(
            Element(row.index, row.role, row.text, row.is_new, _share(place, page)) for row, place in controls
        ),
        scroll_info=ScrollInfo(page.above, page.below),
        viewport_width=page.width,
        viewport_height=page.height,
        document=page.document,
        next_index=max([_next(earlier), *(row.index + 1 for row, _ in controls)]),
        places={row.index: place for row, place in controls},
    )


async def find(look: Look, index: int) -> "ElementHandle":
    """Return the element that `look` showed as `index`, if it is still what it was.

    Raises:
        BrowserError: it is not, or there was none; in words for the model.
    """
    from playwright.async_api import Error

    place = look.places.get(index)
    if place is None:
        reason = "it was shown by an earlier look" if index < look.next_index else "no such index was shown"
        raise _not_found(index, f"{reason}; use an index of the current state.")
    try:
        if place.outlined:
            if (handle := await given(place.frame.page, place)) is None:
                raise _not_found(index, _REASONS["changed"])
            return handle
        # Checked and handed over in one step of the page, so that nothing can change in between.
        handle = await place.frame.query_selector(asked("give", nonce=look.snapshot_id, id=place.id))
        if handle is not None:
            return handle
        reason = json.loads(await place.frame.text_content(asked("why")) or '""')
    except Error:
        reason = "page"
    raise _not_found(index, _REASONS.get(reason, _REASONS["page"]))


def _share(place: Place, page: PageSeen) -> tuple[float, float, float, float] | None:
    if place.box is None:
        return None
    left, top, width, height = place.box
    right, bottom = left + width, top + height
    return left / page.width, top / page.height, right / page.width, bottom / page.height


def _not_found(index: int, why: str) -> BrowserError:
    return BrowserError(f"Element with index {index} not found: {why}")


def _next(earlier: Look | None) -> int:
    return earlier.next_index if earlier else 0


def _numbered(pieces: list[Piece], document: str, earlier: Look | None) -> list[Piece]:
    """The pieces with their indexes: an element that was shown before has the one it had."""
    known = {(place.document, place.id): index for index, place in earlier.places.items()} if earlier else {}
    is_same_page = earlier is not None and earlier.document == document
    gone = _gone(pieces, earlier) if earlier else Counter()
    fresh = _next(earlier)
    numbered = []
    for piece in pieces:
        if piece.place is None:
            numbered.append(piece)
            continue
        index = known.get((piece.place.document, piece.place.id))
        is_new = False
        if index is None:
            index, fresh = fresh, fresh + 1
            # What was drawn anew is nothing new to a reader.
            words = (piece.row.role, piece.row.text)
            is_new = is_same_page and not gone[words]
            gone[words] -= bool(gone[words])
        numbered.append(replace(piece, row=replace(piece.row, index=index, is_new=is_new)))
    return numbered


def _gone(pieces: list[Piece], earlier: Look) -> Counter[tuple[str, str]]:
    """How many elements of each role and name were shown before and are not now."""
    now = {(piece.place.document, piece.place.id) for piece in pieces if piece.place}
    left = (
        element
        for element in earlier.elements
        if (earlier.places[element.index].document, earlier.places[element.index].id) not in now
    )
    return Counter((element.role, element.name) for element in left)
