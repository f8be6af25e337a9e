"""Observation of a tab: its text and controls with their indexes, the screenshot, and the text of a page.

The indexer (`indexer/*.js`) runs as a selector engine, the only way in which Playwright runs a script in an
isolated world: the page's own scripts can neither break it nor fake its answers.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from io import BytesIO
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from maniple.browser.drivers.failures import is_navigated
from maniple.browser.listing import ListingRow, render_rows, sanitize_text, select_rows
from maniple.browser.page import Element, Link, PageText, ScrollInfo
from maniple.errors import BrowserError

if TYPE_CHECKING:
    from PIL import ImageFont
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from playwright.async_api import ElementHandle, Frame, Page, Playwright

_ENGINE = "maniple"
_PARTS = ("dom", "words", "controls", "sight", "offers", "walk", "engine")
_MARGIN_PIXELS = 1_000
# The first rendering of a page may take long; a frame does not get as much time.
_PAGE_MILLISECONDS = 8_000
_FRAME_MILLISECONDS = 3_000
_MAX_FRAMES = 30
# The limit for all frames of a page together; later frames are left out.
_MAX_ROWS = 5_000
_MAX_FRAME_DEPTH = 5
_TEXT_CHARACTERS = 4_000
_NAME_CHARACTERS = 120
_DETAIL_CHARACTERS = 600
# The offset between the line and list numbers of frames; larger than any of them.
_STRIDE = 10_000_000
_CUT = "(The page is too large to be shown as a whole: scroll, or use extract_content.)"

_OUTLINE_MILLISECONDS = 5_000
_MAX_OUTLINE_CHARACTERS = 200_000
_OUTLINE_NAME_CHARACTERS = 120
_OUTLINE_TEXT_CHARACTERS = 300
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

_CHANGE_REASONS = {
    "page": "the page has been reloaded or left since it was shown; look at the current state.",
    "gone": "it was removed from the page, or replaced, since it was shown; look at the current state.",
    "moved": "it has moved to another place of the page since it was shown; look at the current state.",
    "changed": "it has become something else since it was shown; look at the current state.",
}

MAX_WIDTH_PIXELS = 1_280
"""Models scale down larger pictures."""
_MARKED_QUALITY = 70
_FONT_PIXELS = 11
# Dark enough for white digits; neighbours differ.
_COLOURS = ("#c2185b", "#00695c", "#283593", "#bf360c", "#4a148c", "#1b5e20", "#880e4f", "#01579b")

_SCREENSHOT_QUALITY = 80
_SCREENSHOT_MILLISECONDS = 5_000

_SETTLE_MILLISECONDS = 3_000
_EVALUATE_ATTEMPTS = 3
_MAX_PAGE_CHARACTERS = 200_000
_MAX_LINKS = 300
_MAX_LINK_CHARACTERS = 2_000
PAGE_TEXT_SCRIPT = """([characters, links]) => ({
    title: document.title,
    text: (document.body?.innerText ?? "").slice(0, characters),
    links: Array.from(document.links).slice(0, links).map(link => [link.innerText, link.href]),
})"""

PixelBox = tuple[int, int, int, int]
"""Left, top, width and height in CSS pixels of the window."""


@dataclass(frozen=True, slots=True)
class ElementLocation:
    """How to find a control again."""

    frame: "Frame"
    document: str
    """Identifies the document in the frame."""
    id: int | str
    """Identifies the element in that document."""
    box: PixelBox | None
    """None outside of the window."""
    outlined: str = ""
    """The line of Playwright's outline that shows it; "" for the indexer's elements."""


@dataclass(frozen=True, slots=True)
class PagePiece:
    """A row, with the location of a control."""

    row: ListingRow
    location: ElementLocation | None = None
    is_far: bool = False
    """Whether only a scroll since the last observation brought it near the window."""


class IndexerError(Exception):
    """The indexer failed in the main frame."""


@dataclass(frozen=True, slots=True)
class PageSnapshot:
    """The content of all frames in reading order."""

    document: str
    pieces: list[PagePiece]
    above: int
    below: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class PageObservation:
    """The content of a tab at one time, as an agent is shown it."""

    snapshot_id: str
    text: str
    elements: tuple[Element, ...]
    scroll_info: ScrollInfo
    viewport_width: int
    viewport_height: int
    document: str
    """Identifies the document; a page that is loaded again is another one."""
    next_index: int
    """Indexes are never reused, so that an earlier one never means another element."""
    locations: Mapping[int, ElementLocation] = field(repr=False, default_factory=dict)
    controls: "Counter[tuple[str, str]]" = field(repr=False, default_factory=Counter[tuple[str, str]])
    """How many controls the page had of each role and name, shown or not."""


class PageObserver(Protocol):
    """How a backend observes pages."""

    def recorder(self) -> str:
        """Return JavaScript that runs in each page before its own."""
        ...

    async def observe(self, tab: "Page", earlier: PageObservation | None, *, tokens: int) -> PageObservation:
        """Observe a page; `earlier` is the thread's last observation, of any page.

        Raises:
            BrowserError: the page does not answer.
        """
        ...

    async def find(self, observation: PageObservation, index: int) -> "ElementHandle":
        """Return the element that an observation showed at `index`.

        Raises:
            BrowserError: there is none, or it has changed since.
        """
        ...

    async def has_changed(self, tab: "Page", observation: PageObservation) -> bool:
        """Return whether controls came or went since an observation, which stays valid.

        Raises:
            playwright.async_api.Error: the page does not answer.
        """
        ...

    async def screenshot(self, tab: "Page", observation: PageObservation, *, marks: bool) -> bytes:
        """Return the window as JPEG, with or without the indexes."""
        ...


class IndexerObserver:
    """A `PageObserver` that uses the indexer."""

    def recorder(self) -> str:
        """See `PageObserver.recorder`."""
        return recorder_script()

    async def observe(self, tab: "Page", earlier: PageObservation | None, *, tokens: int) -> PageObservation:
        """See `PageObserver.observe`."""
        return await observe_page(tab, earlier, tokens=tokens)

    async def find(self, observation: PageObservation, index: int) -> "ElementHandle":
        """See `PageObserver.find`."""
        return await find_element(observation, index)

    async def has_changed(self, tab: "Page", observation: PageObservation) -> bool:
        """See `PageObserver.has_changed`."""
        return await have_controls_changed(tab, observation)

    async def screenshot(self, tab: "Page", observation: PageObservation, *, marks: bool) -> bytes:
        """See `PageObserver.screenshot`."""
        return await take_screenshot(tab, observation, marks=marks)


async def observe_page(
    tab: "Page", earlier: PageObservation | None = None, *, tokens: int
) -> PageObservation:
    """Observe `tab` and describe it in about `tokens` tokens.

    An element that `earlier` showed keeps its index; others of the same page are marked as new.

    Raises:
        playwright.async_api.Error: the page does not answer, or navigated meanwhile.
    """
    nonce = token_hex(6)
    try:
        page = await take_snapshot(tab.main_frame, nonce)
    except IndexerError:
        page = await take_outline_snapshot(tab, nonce)
    locations = {id(piece.row): piece.location for piece in page.pieces}
    rows = select_rows([piece.row for piece in page.pieces], tokens)
    shown = _number_pieces([PagePiece(row, locations.get(id(row))) for row in rows], page.document, earlier)
    controls = [(piece.row, piece.location) for piece in shown if piece.location is not None]
    return PageObservation(
        snapshot_id=nonce,
        text=render_rows(piece.row for piece in shown),
        elements=tuple(
            Element(row.index, row.role, row.text, row.is_new, _share(location, page))
            for row, location in controls
        ),
        scroll_info=ScrollInfo(page.above, page.below),
        viewport_width=page.width,
        viewport_height=page.height,
        document=page.document,
        next_index=max([_next_index(earlier), *(row.index + 1 for row, _ in controls)]),
        locations={row.index: location for row, location in controls},
        controls=_count_controls(page.pieces),
    )


async def have_controls_changed(tab: "Page", observation: PageObservation) -> bool:
    """Return whether `tab` has other controls than `observation` counted, by role and name.

    Their values, states and places do not matter. The observation stays valid.

    Raises:
        playwright.async_api.Error: the page does not answer, or navigated meanwhile.
    """
    try:
        page = await take_snapshot(tab.main_frame, observation.snapshot_id, compares=True)
    except IndexerError:
        return True
    if page.document != observation.document:
        return True
    now = _count_controls(page.pieces)
    came = _count_controls(piece for piece in page.pieces if not piece.is_far) - observation.controls
    return bool(came or observation.controls - now)


def _count_controls(pieces: "Iterable[PagePiece]") -> "Counter[tuple[str, str]]":
    return Counter((piece.row.role, piece.row.text) for piece in pieces if piece.location is not None)


async def find_element(observation: PageObservation, index: int) -> "ElementHandle":
    """Return the element that `observation` showed at `index`, if it has not changed since.

    Raises:
        BrowserError: it has changed, or there was none; the text is for the model.
    """
    from playwright.async_api import Error

    location = observation.locations.get(index)
    if location is None:
        reason = (
            "it was shown by an earlier look" if index < observation.next_index else "no such index was shown"
        )
        raise _not_found(index, f"{reason}; use an index of the current state.")
    try:
        if location.outlined:
            if (handle := await find_in_outline(location.frame.page, location)) is None:
                raise _not_found(index, _CHANGE_REASONS["changed"])
            return handle
        # One step of the page checks and returns it, so that nothing can change in between.
        handle = await location.frame.query_selector(
            indexer_selector("give", nonce=observation.snapshot_id, id=location.id)
        )
        if handle is not None:
            return handle
        reason = json.loads(await location.frame.text_content(indexer_selector("why")) or '""')
    except Error:
        reason = "page"
    raise _not_found(index, _CHANGE_REASONS.get(reason, _CHANGE_REASONS["page"]))


async def take_snapshot(main: "Frame", nonce: str, *, compares: bool = False) -> PageSnapshot:
    """Index `main` and its visible frames; with `compares`, elements that were shown before stay valid.

    Raises:
        IndexerError: the indexer failed in the main frame.
        playwright.async_api.Error: the main frame does not answer.
    """
    return await _SnapshotBuilder(nonce, compares=compares).main(main)


class _SnapshotBuilder:
    """Builds one snapshot."""

    def __init__(self, nonce: str, *, compares: bool) -> None:
        self._question: dict[str, Any] = {"nonce": nonce, "margin": _MARGIN_PIXELS, "compares": compares}
        self._frames = 0
        self._rows = 0
        self._is_cut = False

    async def main(self, frame: "Frame") -> PageSnapshot:
        page, pieces = await self._frame(frame, {}, (0, 0), 0)
        if self._is_cut:
            pieces.append(PagePiece(ListingRow(self._line(), _CUT, is_notice=True)))
        return PageSnapshot(
            page["document"], pieces, page["above"], page["below"], page["width"], page["height"]
        )

    async def _frame(
        self, frame: "Frame", view: Mapping[str, Any], origin: tuple[int, int], depth: int
    ) -> tuple[dict[str, Any], list[PagePiece]]:
        number = self._frames
        self._frames += 1
        question = indexer_selector("look", **self._question, **view)
        answer = await frame.text_content(
            question, timeout=_FRAME_MILLISECONDS if depth else _PAGE_MILLISECONDS
        )
        page = json.loads(answer or "")
        if "broken" in page:
            raise IndexerError(page["broken"])
        self._rows += len(page["rows"])
        inner = await self._inner_pieces(frame, page["rows"], origin, depth)
        pieces: list[PagePiece] = []
        for raw in page["rows"]:
            if raw["kind"] == "frame":
                pieces += inner.pop(0)
                continue
            row = _row(raw, number * _STRIDE)
            location = _location(raw, frame, page["document"], origin) if row.role else None
            pieces.append(PagePiece(row, location, raw.get("far", False)))
        if page["unlisted"]:
            pieces.append(PagePiece(ListingRow(self._line(), "", left_out=page["unlisted"])))
        if page["cut"]:
            self._is_cut = True
        return page, pieces

    def _line(self) -> int:
        self._frames += 1
        return self._frames * _STRIDE

    async def _inner_pieces(
        self, frame: "Frame", rows: list[dict[str, Any]], origin: tuple[int, int], depth: int
    ) -> list[list[PagePiece]]:
        """Return the pieces of each frame in a frame."""
        holes = [raw for raw in rows if raw["kind"] == "frame"]
        if not holes:
            return []
        handles = await frame.query_selector_all(indexer_selector("frames"))
        found: list[list[PagePiece]] = [[] for _ in holes]
        for place, (hole, handle) in enumerate(zip(holes, handles, strict=False)):
            found[place] = await self._frame_pieces(handle, hole, origin, depth)
        return found

    async def _frame_pieces(
        self, handle: Any, hole: dict[str, Any], origin: tuple[int, int], depth: int
    ) -> list[PagePiece]:
        from playwright.async_api import Error

        if depth >= _MAX_FRAME_DEPTH or self._frames >= _MAX_FRAMES or self._rows >= _MAX_ROWS:
            self._is_cut = True
            return []
        x, y = hole["origin"]
        view = {"clip": hole["clip"], "mask": hole["mask"]}
        try:
            inner = await handle.content_frame()
            if inner is None:
                return []
            _, pieces = await self._frame(inner, view, (origin[0] + x, origin[1] + y), depth + 1)
        except (Error, IndexerError):
            # The frame is loading, gone or hangs; the page around it can still be used.
            return [PagePiece(ListingRow(self._line(), "(a frame that does not answer)", seen=hole["seen"]))]
        return pieces


def _row(raw: dict[str, Any], offset: int) -> ListingRow:
    group = raw["list"] and raw["list"] + offset
    line = raw["line"] + offset
    if raw["kind"] == "gap":
        return ListingRow(line, "", seen=False, group=group, left_out=raw["count"])
    if raw["kind"] == "text":
        return ListingRow(line, sanitize_text(raw["text"], _TEXT_CHARACTERS), raw["seen"], group, raw["item"])
    role = re.sub(r"[^\w -]", "", raw["role"]) or "element"
    details = tuple(sanitize_text(detail, _DETAIL_CHARACTERS) for detail in raw["details"])
    return ListingRow(
        line, sanitize_text(raw["name"], _NAME_CHARACTERS), raw["seen"], group, raw["item"], role, details
    )


def _location(raw: dict[str, Any], frame: "Frame", document: str, origin: tuple[int, int]) -> ElementLocation:
    box = raw["box"] and (raw["box"][0] + origin[0], raw["box"][1] + origin[1], raw["box"][2], raw["box"][3])
    return ElementLocation(frame, document, raw["id"], box)


@cache
def _script(*names: str) -> str:
    folder = files("maniple.browser.drivers") / "indexer"
    return "\n".join((folder / f"{name}.js").read_text(encoding="utf-8") for name in names)


def recorder_script() -> str:
    """Return the script for every context before its first page: it records click listeners."""
    return _script("recorder")


async def register_indexer(playwright: "Playwright") -> None:
    """Register the indexer as a selector engine, once, before the first page is opened."""
    script = await asyncio.to_thread(_script, *_PARTS)
    await playwright.selectors.register(_ENGINE, f"(() => {{\n{script}\n}})()", content_script=True)


def indexer_selector(what: str, **more: Any) -> str:
    """Return the selector that sends a request to the indexer in a frame."""
    return f"{_ENGINE}={quote(json.dumps({'ask': what, **more}))}"


async def take_outline_snapshot(tab: "Page", nonce: str) -> PageSnapshot:
    """Return the snapshot from Playwright's accessibility outline, for pages on which the indexer fails.

    It contains the whole page, without positions.

    Raises:
        playwright.async_api.Error: the page does not answer.
    """
    pieces = []
    for number, line in enumerate(await _outline_lines(tab)):
        if piece := _outline_piece(tab, number, line, nonce):
            pieces.append(piece)
    size = tab.viewport_size or {"width": 1, "height": 1}
    return PageSnapshot(nonce, pieces, 0, 0, size["width"], size["height"])


async def find_in_outline(tab: "Page", location: ElementLocation) -> "ElementHandle | None":
    """Return the element at `location`, if the outline still has its line.

    Raises:
        playwright.async_api.Error: the page does not answer.
    """
    if location.outlined not in map(str.strip, await _outline_lines(tab)):
        return None
    return await tab.query_selector(f"aria-ref={location.id}")


async def _outline_lines(tab: "Page") -> list[str]:
    outline = await tab.aria_snapshot(mode="ai", timeout=_OUTLINE_MILLISECONDS)
    return outline[:_MAX_OUTLINE_CHARACTERS].splitlines()


def _outline_piece(tab: "Page", number: int, line: str, nonce: str) -> PagePiece | None:
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    marks = dict(_MARK.findall(found["marks"]))
    name, text = (found["name"] or "").replace('\\"', '"'), (found["text"] or "").strip("\"'")
    if "ref" not in marks or not (_ROLES.fullmatch(found["role"]) or "cursor" in marks):
        words = sanitize_text(name or text, _OUTLINE_TEXT_CHARACTERS)
        return PagePiece(ListingRow(number, words)) if words else None
    states = tuple(state for state in marks if state in _STATES)
    value = (f'value="{sanitize_text(text, _OUTLINE_NAME_CHARACTERS)}"',) if text and name else ()
    row = ListingRow(
        number,
        sanitize_text(name or text, _OUTLINE_NAME_CHARACTERS),
        role=found["role"],
        details=(*value, *states),
    )
    return PagePiece(row, ElementLocation(tab.main_frame, nonce, marks["ref"], None, line.strip()))


def _share(location: ElementLocation, page: PageSnapshot) -> tuple[float, float, float, float] | None:
    if location.box is None:
        return None
    left, top, width, height = location.box
    right, bottom = left + width, top + height
    return left / page.width, top / page.height, right / page.width, bottom / page.height


def _not_found(index: int, why: str) -> BrowserError:
    return BrowserError(f"Element with index {index} not found: {why}")


def _next_index(earlier: PageObservation | None) -> int:
    return earlier.next_index if earlier else 0


def _number_pieces(
    pieces: list[PagePiece], document: str, earlier: PageObservation | None
) -> list[PagePiece]:
    """Return the pieces with indexes; an element that was shown before keeps its own."""
    known = (
        {(location.document, location.id): index for index, location in earlier.locations.items()}
        if earlier
        else {}
    )
    is_same_page = earlier is not None and earlier.document == document
    gone = _count_gone(pieces, earlier) if earlier else Counter()
    fresh = _next_index(earlier)
    numbered = []
    for piece in pieces:
        if piece.location is None:
            numbered.append(piece)
            continue
        index = known.get((piece.location.document, piece.location.id))
        is_new = False
        if index is None:
            index, fresh = fresh, fresh + 1
            # An element that the page only rendered again is not new to a reader.
            words = (piece.row.role, piece.row.text)
            is_new = is_same_page and not gone[words]
            gone[words] -= bool(gone[words])
        numbered.append(replace(piece, row=replace(piece.row, index=index, is_new=is_new)))
    return numbered


def _count_gone(pieces: list[PagePiece], earlier: PageObservation) -> Counter[tuple[str, str]]:
    """Count by role and name the elements that were shown before and are gone."""
    now = {(piece.location.document, piece.location.id) for piece in pieces if piece.location}
    left = (
        element
        for element in earlier.elements
        if (earlier.locations[element.index].document, earlier.locations[element.index].id) not in now
    )
    return Counter((element.role, element.name) for element in left)


async def take_screenshot(tab: "Page", observation: PageObservation, *, marks: bool) -> bytes:
    """Return the window as JPEG, at most 1,280 pixels wide, with the observation's indexes if `marks`.

    Raises:
        playwright.async_api.Error: the page is not rendered in time.
    """
    jpeg = await tab.screenshot(
        type="jpeg", quality=_SCREENSHOT_QUALITY, scale="css", timeout=_SCREENSHOT_MILLISECONDS
    )
    if not marks and observation.viewport_width <= MAX_WIDTH_PIXELS:
        return jpeg
    return await asyncio.to_thread(draw_marks, jpeg, observation.elements if marks else ())


async def take_plain_screenshot(tab: "Page") -> bytes:
    """Return the window as JPEG, at most 1,280 pixels wide, without marks; raises as `take_screenshot`."""
    jpeg = await tab.screenshot(
        type="jpeg", quality=_SCREENSHOT_QUALITY, scale="css", timeout=_SCREENSHOT_MILLISECONDS
    )
    size = tab.viewport_size
    if size is not None and size["width"] <= MAX_WIDTH_PIXELS:
        return jpeg
    return await asyncio.to_thread(draw_marks, jpeg, ())


def draw_marks(jpeg: bytes, elements: Iterable[Element]) -> bytes:
    """Return the picture as JPEG, at most `MAX_WIDTH_PIXELS` wide, with a frame around each visible element.

    The marks are drawn here, so that pages cannot see them. Takes about 20 ms of computing.
    """
    from PIL import Image, ImageDraw

    with Image.open(BytesIO(jpeg)) as opened:
        picture = opened.convert("RGB")
    picture.thumbnail((MAX_WIDTH_PIXELS, picture.height))
    pen = ImageDraw.Draw(picture)
    for element in elements:
        if element.box is not None:
            _draw_mark(pen, picture, element.index, element.box)
    written = BytesIO()
    picture.save(written, "JPEG", quality=_MARKED_QUALITY)
    return written.getvalue()


def _draw_mark(
    pen: "ImageDraw", picture: "Image", index: int, box: tuple[float, float, float, float]
) -> None:
    left, top, right, bottom = (
        round(share * length) for share, length in zip(box, picture.size * 2, strict=True)
    )
    colour = _COLOURS[index % len(_COLOURS)]
    pen.rectangle((left, top, max(left, right - 1), max(top, bottom - 1)), outline=colour)
    label = str(index)
    width = round(_font().getlength(label)) + 4
    # At the corner where a control rarely has text.
    x = min(max(right - width, 0), picture.width - width)
    y = max(top - _FONT_PIXELS + 2, 0)
    pen.rectangle((x, y, x + width, y + _FONT_PIXELS + 1), fill=colour)
    pen.text((x + 2, y), label, fill="white", font=_font())


@cache
def _font() -> "ImageFont.FreeTypeFont | ImageFont.ImageFont":
    from PIL import ImageFont

    return ImageFont.load_default(_FONT_PIXELS)


async def read_page_text(page: "Page") -> PageText:
    """Return the text of an open page; raises Playwright's errors."""
    found = await evaluate_when_settled(page, PAGE_TEXT_SCRIPT, page_text_limits())
    return parse_page_text(page.url, None, found)


def page_text_limits() -> list[int]:
    """Return the argument of `PAGE_TEXT_SCRIPT`: the numbers of characters and links."""
    return [_MAX_PAGE_CHARACTERS, _MAX_LINKS]


async def evaluate_when_settled(page: "Page", script: str, argument: Any) -> Any:
    """Evaluate JavaScript in a page when its network is idle, or after three seconds."""
    from playwright.async_api import Error
    from playwright.async_api import TimeoutError as StillBusyError

    for attempt in range(1, _EVALUATE_ATTEMPTS + 1):
        with suppress(StillBusyError):
            await page.wait_for_load_state("networkidle", timeout=_SETTLE_MILLISECONDS)
        try:
            return await page.evaluate(script, argument)
        except Error as error:
            # The page navigated by itself (a script, a refresh): evaluate in the new one.
            if attempt == _EVALUATE_ATTEMPTS or not is_navigated(error):
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def parse_page_text(url: str, status: int | None, found: Any) -> PageText:
    """Return the result of `PAGE_TEXT_SCRIPT`; the page's scripts may have changed it to any value."""
    found = found if isinstance(found, dict) else {}
    links = found.get("links")
    return PageText(
        url=url,
        title=" ".join(_as_text(found.get("title")).split())[:500],
        text=_as_text(found.get("text"))[:_MAX_PAGE_CHARACTERS],
        links=tuple(_parse_links(links if isinstance(links, list) else [])),
        status=status,
    )


def _parse_links(found: list[Any]) -> list[Link]:
    pairs = (pair for pair in found[:_MAX_LINKS] if isinstance(pair, list) and len(pair) == 2)
    links = (Link(" ".join(_as_text(text).split())[:200], _as_text(url)) for text, url in pairs)
    return [
        link
        for link in links
        if link.url.startswith(("http://", "https://")) and len(link.url) <= _MAX_LINK_CHARACTERS
    ]


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""
