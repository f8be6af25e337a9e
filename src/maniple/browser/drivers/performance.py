"""Doing one action in a thread's window, within its time, whatever the page does meanwhile."""

import asyncio

from maniple.browser.actions import Action, ActionResult
from maniple.browser.drivers.failures import EndedError
from maniple.browser.drivers.outcome import after, before
from maniple.browser.drivers.window import Window
from maniple.browser.page import Aids
from maniple.browser.wording import done

_SPARE_SECONDS = 10.0
_CANCELLED = "The page's question {prompt} was answered with Cancel, for no answer was sent."


async def perform(window: Window, action: Action, aids: Aids) -> ActionResult:
    """Do it; raises what `Act` raises, and `TimeoutError` when the page holds it up for too long."""
    window.dialogs.begin()
    if (prompt := window.dialogs.prompt) is not None:
        if action.action == "send_keys":
            return await _answered(window, action.keys or "", aids)
        window.notices.add(_CANCELLED.format(prompt=prompt))
        await window.dialogs.answer(None)
    work = asyncio.create_task(_in_time(window, action, aids))
    asked = asyncio.create_task(window.dialogs.asked.wait())
    ended = asyncio.create_task(window.ended.wait())
    try:
        await asyncio.wait((work, asked, ended), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
        if window.ended.is_set():
            raise EndedError
        return ActionResult(f"{done(action)} - The page asks: {window.dialogs.prompt}")
    finally:
        for task in (work, asked, ended):
            task.cancel()
        await asyncio.gather(work, asked, ended, return_exceptions=True)


async def _answered(window: Window, keys: str, aids: Aids) -> ActionResult:
    stood = before(window, await window.tabs.current())
    match keys.strip().lower():
        case "escape" | "esc":
            await window.dialogs.answer(None)
        case "enter" | "return":
            await window.dialogs.answer("")
        case _:
            await window.dialogs.answer(keys.removesuffix("\n"))
    return await after(window, stood, aids, f"Sent keys: {keys}")


async def _in_time(window: Window, action: Action, aids: Aids) -> ActionResult:
    act = window.fittings.acts[action.action]
    # What others do for an action has limits of its own.
    if action.action in ("extract_content", "web_search", "wait"):
        return await act(window, action, aids)
    settings = window.settings
    async with asyncio.timeout(settings.timeout_seconds + 2 * settings.action_seconds + _SPARE_SECONDS):
        return await act(window, action, aids)
