"""Taking out of a page what is asked for."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from maniple.browser.actions import Action, ActionResult
from maniple.browser.drivers.failures import Unable
from maniple.browser.drivers.page_scripts import script
from maniple.browser.drivers.window import Window
from maniple.browser.page import Aids
from maniple.reading import UnreadableDocument
from maniple.reading.fork_server import ForkServer

if TYPE_CHECKING:
    from playwright.async_api import Frame, Page

_NOTHING = "No content was extracted from the page."
_FRAMES = 20
_FRAME_SECONDS = 5.0
_MAX_CHARACTERS = 2_000_000
# What a caller is given who has nobody to read it.
_SHOWN_CHARACTERS = 30_000


async def extract_content(window: Window, action: Action, aids: Aids) -> ActionResult:
    """Read the page and what is in its frames, and give what answers the goal."""
    page = (await window.tabs.current()).page
    markdown = await _markdown(page, window.fittings.fork_server)
    if markdown and aids.extract is not None:
        found = await aids.extract(action.goal or "", markdown)
    else:
        found = _cut(markdown)
    if not found.strip():
        return ActionResult(_NOTHING, changed=False)
    return ActionResult(f"Extracted from page:\n{found.strip()}\n", changed=False)


async def _markdown(page: "Page", fork_server: ForkServer) -> str:
    visible = await script("visible")
    parts: list[str] = []
    left = _MAX_CHARACTERS
    for frame in page.frames[:_FRAMES]:
        html = await _html(frame, visible, left)
        if frame is page.main_frame and html is None:
            raise Unable("the page does not answer; wait, or open another one")
        left -= len(html or "")
        if html and (text := await _read(html, frame.url, fork_server)):
            parts.append(text)
    return "\n\n".join(parts)


async def _html(frame: "Frame", visible: str, characters: int) -> str | None:
    """What is seen in a frame; None when it does not answer."""
    from playwright.async_api import Error

    with suppress(TimeoutError, Error):
        async with asyncio.timeout(_FRAME_SECONDS):
            found = await frame.evaluate(visible, characters)
            return found if isinstance(found, str) else ""
    return None


async def _read(html: str, url: str, fork_server: ForkServer) -> str:
    try:
        return (
            await fork_server.read("html", html.encode("utf-8", "replace"), url, "utf-8")
        ).markdown.strip()
    except UnreadableDocument as error:
        return f"({url} {error}.)"


def _cut(markdown: str) -> str:
    if len(markdown) <= _SHOWN_CHARACTERS:
        return markdown
    return (
        f"{markdown[:_SHOWN_CHARACTERS]}\n(The first {_SHOWN_CHARACTERS:,} of {len(markdown):,} characters.)"
    )
