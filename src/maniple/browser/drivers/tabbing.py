"""Switching and closing tabs; waiting."""

import asyncio

from maniple.browser.actions import Action, ActionResult
from maniple.browser.drivers.failures import Unable
from maniple.browser.drivers.window import Window
from maniple.browser.page import Aids
from maniple.browser.wording import done


async def switch_tab(window: Window, action: Action, aids: Aids) -> ActionResult:
    """Look at another tab."""
    wanted = action.tab_id if action.tab_id is not None else 0
    if not window.tabs.switch(wanted):
        there = ", ".join(map(str, window.tabs.ids)) or "none"
        raise Unable(f"there is no tab {wanted}; open are: {there}")
    await (await window.tabs.current()).page.bring_to_front()
    return ActionResult(done(action))


async def close_tab(window: Window, action: Action, aids: Aids) -> ActionResult:
    """Close the current tab; shown is then the one it was opened from, or the newest, or an empty one."""
    await window.tabs.close_current()
    await window.tabs.current()
    return ActionResult(done(action))


async def wait(window: Window, action: Action, aids: Aids) -> ActionResult:
    """Do nothing for a while."""
    seconds = min(action.seconds, window.settings.max_wait_seconds)
    await asyncio.sleep(seconds)
    return ActionResult(done(action.model_copy(update={"seconds": seconds})))
