"""Actions on a whole tab: extracting its content, switching, closing and waiting."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from maniple.browser.actions import (
    Action,
    ActionResult,
    Goal,
    Seconds,
    TabId,
    action,
    describe_stored_picture,
    success_text,
)
from maniple.browser.drivers.failures import ActionFailedError
from maniple.browser.drivers.observation import take_plain_screenshot
from maniple.browser.drivers.window import BrowserWindow, page_script
from maniple.browser.page import PagePicture, PageServices
from maniple.reading import UnreadableDocument
from maniple.reading.fork_server import ForkServer

if TYPE_CHECKING:
    from playwright.async_api import Frame, Page

_NOTHING = "No content was extracted from the page."
_MAX_FRAMES = 20
_FRAME_SECONDS = 5.0
_MAX_CHARACTERS = 2_000_000
# The limit of what is returned when no model extracts.
_SHOWN_CHARACTERS = 30_000


class ExtractAction(Action):
    goal: Goal


class SwitchTabAction(Action):
    tab_id: TabId


class WaitAction(Action):
    seconds: Seconds = 3


@action(
    "extract_content",
    ExtractAction,
    kind="extraction",
    line="extraction",
    prompt="extract_content (goal): what the whole page says about a goal",
    has_own_limits=True,
)
async def extract_content(
    window: BrowserWindow, action: ExtractAction, services: PageServices
) -> ActionResult:
    """Read the page with its frames, and return what answers the goal."""
    page = (await window.tabs.current()).page
    markdown = await _markdown(page, window.resources.fork_server)
    if markdown and services.extract is not None:
        found = await services.extract(action.goal, markdown)
    else:
        found = _cut(markdown)
    if not found.strip():
        return ActionResult(_NOTHING, changed=False)
    return ActionResult(f"Extracted from page:\n{found.strip()}\n", changed=False)


async def _markdown(page: "Page", fork_server: ForkServer) -> str:
    visible = await page_script("visible")
    parts: list[str] = []
    left = _MAX_CHARACTERS
    for frame in page.frames[:_MAX_FRAMES]:
        html = await _visible_html(frame, visible, left)
        if frame is page.main_frame and html is None:
            raise ActionFailedError("the page does not answer; wait, or open another one")
        left -= len(html or "")
        if html and (text := await _read(html, frame.url, fork_server)):
            parts.append(text)
    return "\n\n".join(parts)


async def _visible_html(frame: "Frame", visible: str, characters: int) -> str | None:
    """Return the visible HTML of a frame; None when it does not answer."""
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


@action(
    "take_screenshot",
    Action,
    kind="picture",
    line="pictures",
    prompt="take_screenshot: stores what the window shows as a picture, for your team and for reports",
)
async def take_screenshot(window: BrowserWindow, action: Action, services: PageServices) -> ActionResult:
    """Store a picture of the window, without marks."""
    if services.save_picture is None:
        raise ActionFailedError("there is no workspace in which the picture could be stored")
    page = (await window.tabs.current()).page
    picture = PagePicture(page.url, await page.title(), await take_plain_screenshot(page))
    return ActionResult(describe_stored_picture(await services.save_picture(picture)), changed=False)


@action(
    "switch_tab",
    SwitchTabAction,
    kind="move",
    line="tabs",
    prompt="switch_tab (tab_id)",
    done="Switched to tab {tab_id}",
)
async def switch_tab(window: BrowserWindow, action: SwitchTabAction, services: PageServices) -> ActionResult:
    """Make another tab the current one."""
    if not window.tabs.switch(action.tab_id):
        there = ", ".join(map(str, window.tabs.ids)) or "none"
        raise ActionFailedError(f"there is no tab {action.tab_id}; open are: {there}")
    await (await window.tabs.current()).page.bring_to_front()
    return ActionResult(success_text(action))


@action("close_tab", Action, kind="move", line="tabs", prompt="close_tab", done="Closed current tab")
async def close_tab(window: BrowserWindow, action: Action, services: PageServices) -> ActionResult:
    """Close the current tab; its opener becomes current, else the newest tab, else an empty one."""
    await window.tabs.close_current()
    await window.tabs.current()
    return ActionResult(success_text(action))


@action(
    "wait",
    WaitAction,
    kind="move",
    line="waiting",
    prompt="wait (seconds)",
    done="Waited for {seconds:g} seconds",
    has_own_limits=True,
)
async def wait(window: BrowserWindow, action: WaitAction, services: PageServices) -> ActionResult:
    """Wait, for at most `browser.max_wait_seconds`."""
    seconds = min(action.seconds, window.settings.max_wait_seconds)
    await asyncio.sleep(seconds)
    return ActionResult(success_text(action.model_copy(update={"seconds": seconds})))
