"""What the frames of a tab hold, gathered into one sequence of pieces in reading order.

The script that looks (`indexer/`) runs as a selector engine, which is the one thing that Playwright lets run
in a world of its own: the page's scripts can neither break it nor lie to it.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from maniple.browser.listing import Row
from maniple.browser.words import safe

if TYPE_CHECKING:
    from playwright.async_api import Frame, Playwright

_ENGINE = "maniple"
_PARTS = ("dom", "words", "controls", "sight", "offers", "walk", "engine")
_MARGIN = 1_000
# A page that is drawn for the first time may take its time; a frame in it is not worth that.
_PAGE_MILLISECONDS = 8_000
_FRAME_MILLISECONDS = 3_000
_MOST_FRAMES = 30
# What a page full of frames may take all together: the frames after that are left out.
_MOST_ROWS = 5_000
_DEEPEST = 5
_TEXT = 4_000
_NAME = 120
_DETAIL = 600
# Far above what a frame has lines or lists.
_STRIDE = 10_000_000
_CUT = "(The page is too large to be shown as a whole: scroll, or use extract_content.)"

Box = tuple[int, int, int, int]
"""Left, top, width and height in CSS pixels of the window."""


@cache
def _script(*names: str) -> str:
    folder = files("maniple.browser.drivers") / "indexer"
    return "\n".join((folder / f"{name}.js").read_text(encoding="utf-8") for name in names)


def recorder() -> str:
    """Return the script for every context before its first page: it remembers what listens for clicks."""
    return _script("recorder")


async def prepare(playwright: "Playwright") -> None:
    """Teach Playwright to look; once, before the first page is opened."""
    script = await asyncio.to_thread(_script, *_PARTS)
    await playwright.selectors.register(_ENGINE, f"(() => {{\n{script}\n}})()", content_script=True)


def asked(what: str, **more: Any) -> str:
    """Return the selector that puts a question to the script in a frame."""
    return f"{_ENGINE}={quote(json.dumps({'ask': what, **more}))}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a control is to be found again."""

    frame: "Frame"
    document: str
    """The page that the frame held."""
    id: int | str
    """Its own among the elements of that page."""
    box: Box | None
    """None when it is not in the window."""
    outlined: str = ""
    """The line of Playwright's outline that showed it, when that did."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A row, and for a control its place."""

    row: Row
    place: Place | None = None


class BrokenIndexer(Exception):
    """The script that looks failed in the main frame."""


@dataclass(frozen=True, slots=True)
class PageSeen:
    """What a look at all frames gave."""

    document: str
    pieces: list[Piece]
    above: int
    below: int
    width: int
    height: int


async def seen_in(main: "Frame", nonce: str) -> PageSeen:
    """Look at `main` and the frames that can be seen in it.

    Raises:
        BrokenIndexer: something in the main frame is more than the script can take.
        playwright.async_api.Error: the main frame does not answer.
    """
    return await _Looking(nonce).main(main)


class _Looking:
    """One look at a tab."""

    def __init__(self, nonce: str) -> None:
        self._nonce = nonce
        self._frames = 0
        self._rows = 0

    async def main(self, frame: "Frame") -> PageSeen:
        page, pieces = await self._frame(frame, {}, (0, 0), 0)
        return PageSeen(page["document"], pieces, page["above"], page["below"], page["width"], page["height"])

    async def _frame(
        self, frame: "Frame", view: Mapping[str, Any], origin: tuple[int, int], depth: int
    ) -> tuple[dict[str, Any], list[Piece]]:
        number = self._frames
        self._frames += 1
        question = asked("look", nonce=self._nonce, margin=_MARGIN, **view)
        answer = await frame.text_content(
            question, timeout=_FRAME_MILLISECONDS if depth else _PAGE_MILLISECONDS
        )
        page = json.loads(answer or "")
        if "broken" in page:
            raise BrokenIndexer(page["broken"])
        self._rows += len(page["rows"])
        inner = await self._inner(frame, page["rows"], origin, depth)
        pieces: list[Piece] = []
        for raw in page["rows"]:
            if raw["kind"] == "frame":
                pieces += inner.pop(0)
                continue
            row = _row(raw, number * _STRIDE)
            pieces.append(Piece(row, _place(raw, frame, page["document"], origin) if row.role else None))
        if page["unlisted"]:
            pieces.append(Piece(Row(self._line(), "", left_out=page["unlisted"])))
        if page["cut"]:
            pieces.append(Piece(Row(self._line(), _CUT)))
        return page, pieces

    def _line(self) -> int:
        self._frames += 1
        return self._frames * _STRIDE

    async def _inner(
        self, frame: "Frame", rows: list[dict[str, Any]], origin: tuple[int, int], depth: int
    ) -> list[list[Piece]]:
        """The pieces of each frame in a frame."""
        holes = [raw for raw in rows if raw["kind"] == "frame"]
        if not holes:
            return []
        handles = await frame.query_selector_all(asked("frames"))
        found: list[list[Piece]] = [[] for _ in holes]
        if depth < _DEEPEST:
            for place, (hole, handle) in enumerate(zip(holes, handles, strict=False)):
                found[place] = await self._framed(handle, hole, origin, depth)
        return found

    async def _framed(
        self, handle: Any, hole: dict[str, Any], origin: tuple[int, int], depth: int
    ) -> list[Piece]:
        from playwright.async_api import Error

        if self._frames >= _MOST_FRAMES or self._rows >= _MOST_ROWS:
            return []
        x, y = hole["origin"]
        view = {"clip": hole["clip"], "mask": hole["mask"]}
        try:
            inner = await handle.content_frame()
            if inner is None:
                return []
            _, pieces = await self._frame(inner, view, (origin[0] + x, origin[1] + y), depth + 1)
        except (Error, BrokenIndexer):
            # It is loading, going, or hangs: the page around it can be used all the same.
            return [Piece(Row(self._line(), "(a frame that does not answer)", seen=hole["seen"]))]
        return pieces


def _row(raw: dict[str, Any], offset: int) -> Row:
    group = raw["list"] and raw["list"] + offset
    line = raw["line"] + offset
    if raw["kind"] == "gap":
        return Row(line, "", seen=False, group=group, left_out=raw["count"])
    if raw["kind"] == "text":
        return Row(line, safe(raw["text"], _TEXT), raw["seen"], group, raw["item"])
    role = re.sub(r"[^\w -]", "", raw["role"]) or "element"
    details = tuple(safe(detail, _DETAIL) for detail in raw["details"])
    return Row(line, safe(raw["name"], _NAME), raw["seen"], group, raw["item"], role, details)


def _place(raw: dict[str, Any], frame: "Frame", document: str, origin: tuple[int, int]) -> Place:
    box = raw["box"] and (raw["box"][0] + origin[0], raw["box"][1] + origin[1], raw["box"][2], raw["box"][3])
    return Place(frame, document, raw["id"], box)
