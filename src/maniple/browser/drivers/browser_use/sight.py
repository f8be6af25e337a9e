"""Looking at pages with browser-use."""

from collections.abc import Mapping
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from maniple.browser.drivers import pictures
from maniple.browser.drivers.browser_use.eyes import Eyes
from maniple.browser.drivers.failures import Unable
from maniple.browser.drivers.looking import Look
from maniple.browser.listing import Row, chosen, text_of
from maniple.browser.state import Element, ScrollInfo
from maniple.browser.words import safe
from maniple.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, ElementHandle, Page

_LOOK_SECONDS = 30.0
_MARK_SECONDS = 10.0
_TEXT = 500
_NAME = 120
_CHANGED = "it has gone or become something else since it was shown; look at the current state."


@dataclass(frozen=True, slots=True)
class Shown:
    """Where what was shown under an index is found again."""

    eyes: Eyes
    look: str
    place: int
    page: "Page"


class BrowserUseSight:
    """See `Sight`; each context has a browser-use of its own."""

    def __init__(self) -> None:
        self._eyes: dict[BrowserContext, Eyes] = {}
        self._shown: dict[BrowserContext, tuple[str, Mapping[int, Shown], Mapping[str, int]]] = {}

    def attach(self, context: "BrowserContext", eyes: Eyes) -> None:
        """Look at the pages of `context` with `eyes`, until it is closed."""
        self._eyes[context] = eyes
        context.on("close", self._forget)

    def recorder(self) -> str:
        """See `Sight.recorder`: nothing."""
        return ""

    async def look(self, tab: "Page", earlier: Look | None, *, tokens: int) -> Look:
        """See `Sight.look`."""
        context, eyes = tab.context, self._eyes[tab.context]
        nonce = token_hex(6)
        seen = await eyes.ask("look", _LOOK_SECONDS, target=await _target(tab), look=nonce)
        if "failed" in seen:
            raise BrowserError(f"The page cannot be seen: {safe(str(seen['failed']), 200)}")
        rows, places, keys = _numbered(seen, earlier, self._shown.get(context))
        kept = chosen(rows, tokens)
        told = [row for row in kept if row.role]
        shown = {row.index: Shown(eyes, nonce, places[row.index], tab) for row in told}
        self._shown[context] = (nonce, shown, keys)
        return Look(
            snapshot_id=nonce,
            text=text_of(kept),
            elements=tuple(Element(row.index, row.role, row.text, row.is_new) for row in told),
            scroll_info=ScrollInfo(int(seen["above"]), int(seen["below"])),
            viewport_width=int(seen["width"]),
            viewport_height=int(seen["height"]),
            document=str(seen["document"]),
            next_index=max([earlier.next_index if earlier else 0, *(index + 1 for index in places)]),
        )

    def shown(self, context: "BrowserContext", look: Look, index: int) -> Shown:
        """Where the element is that `look` showed under `index`; raises `BrowserError` when it did not."""
        nonce, shown, _ = self._shown.get(context, ("", {}, {}))
        if nonce != look.snapshot_id or index not in shown:
            raise BrowserError(f"Element with index {index} not found: no such index was shown.")
        return shown[index]

    async def do(self, shown: Shown, index: int, what: str, seconds: float, **fields: Any) -> None:
        """Have browser-use do something with an element.

        Raises:
            BrowserError: it is no longer what was shown.
            Unable: browser-use could not do it.
        """
        told = await shown.eyes.ask(what, seconds, look=shown.look, place=shown.place, **fields)
        if told.get("changed"):
            raise BrowserError(f"Element with index {index} not found: {_CHANGED}")
        if why := told.get("failed") or told.get("refused"):
            raise Unable(safe(str(why), 200))

    async def find(self, look: Look, index: int) -> "ElementHandle":
        """See `Sight.find`."""
        context = next((one for one, (nonce, _, _) in self._shown.items() if nonce == look.snapshot_id), None)
        if context is None:
            raise BrowserError(f"Element with index {index} not found: no such index was shown.")
        shown = self.shown(context, look, index)
        mark = f"data-{token_hex(8)}"
        await self.do(shown, index, "mark", _MARK_SECONDS, mark=mark)
        for frame in shown.page.frames:
            if (handle := await frame.query_selector(f"[{mark}]")) is not None:
                await handle.evaluate("(element, mark) => element.removeAttribute(mark)", mark)
                return handle
        raise BrowserError(f"Element with index {index} not found: {_CHANGED}")

    async def screenshot(self, tab: "Page", look: Look, *, marks: bool) -> bytes:
        """See `Sight.screenshot`; without marks."""
        return await pictures.screenshot(tab, look, marks=False)

    def _forget(self, context: "BrowserContext") -> None:
        self._eyes.pop(context, None)
        self._shown.pop(context, None)


def _numbered(
    seen: dict[str, Any],
    earlier: Look | None,
    before: tuple[str, Mapping[int, Shown], Mapping[str, int]] | None,
) -> tuple[list[Row], dict[int, int], dict[str, int]]:
    """Rows with indexes that are given once and stay with their element; places by index; indexes by key."""
    document = str(seen["document"])
    known = before[2] if before else {}
    is_same_page = earlier is not None and earlier.document == document
    fresh = earlier.next_index if earlier else 0
    rows: list[Row] = []
    places: dict[int, int] = {}
    keys: dict[str, int] = {}
    for line, raw in enumerate(seen["rows"]):
        if "text" in raw:
            rows.append(Row(line, safe(raw["text"], _TEXT), raw["seen"]))
            continue
        key = f"{document}-{raw['key']}"
        index = known.get(key, fresh)
        fresh += index == fresh
        keys[key] = index
        places[index] = len(places)
        rows.append(_control(raw, line, index, is_new=is_same_page and key not in known))
    return rows, places, keys


def _control(raw: dict[str, Any], line: int, index: int, *, is_new: bool) -> Row:
    role = raw["role"] or (f"{raw['tag']} {raw['type']}" if raw["tag"] == "input" else raw["tag"])
    value = safe(raw["value"], _NAME)
    details = (f'value="{value}"',) if value and value != raw["name"] else ()
    kind = "".join(one for one in role if one.isalnum() or one in " -_").strip() or "element"
    return Row(
        line, safe(raw["name"], _NAME), raw["seen"], role=kind, details=details, index=index, is_new=is_new
    )


async def _target(tab: "Page") -> str:
    session = await tab.context.new_cdp_session(tab)
    try:
        return (await session.send("Target.getTargetInfo"))["targetInfo"]["targetId"]
    finally:
        await session.detach()
