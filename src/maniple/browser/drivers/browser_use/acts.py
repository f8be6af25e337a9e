"""The two actions that browser-use does itself."""

from collections.abc import Mapping

from maniple.browser.actions import Action, ActionName, ActionResult
from maniple.browser.drivers.acts import ACTS
from maniple.browser.drivers.browser_use.sight import BrowserUseSight, Shown
from maniple.browser.drivers.outcome import after, before
from maniple.browser.drivers.window import Act, Window
from maniple.browser.page import Aids
from maniple.browser.wording import MASK, done
from maniple.errors import BrowserError

_CLICK_SECONDS = 20.0
_TYPE_SECONDS = 10.0
_SECONDS_PER_CHARACTER = 0.05
_NO_TEXT = ("input file", "input checkbox", "input radio", "input submit", "input button", "select", "button")


def acts_of(sight: BrowserUseSight) -> Mapping[ActionName, Act]:
    """The actions as the default driver does them, but for clicks and text."""

    async def click_element(window: Window, action: Action, aids: Aids) -> ActionResult:
        stood = before(window, await window.tabs.current())
        shown, index, _ = await _shown(sight, window, action)
        await sight.do(shown, index, "click", _CLICK_SECONDS)
        return await after(window, stood, aids, done(action))

    async def input_text(window: Window, action: Action, aids: Aids) -> ActionResult:
        stood = before(window, await window.tabs.current())
        shown, index, role = await _shown(sight, window, action)
        if role in _NO_TEXT:  # files, and words about what takes no text
            return await ACTS["input_text"](window, action, aids)
        text = action.text or ""
        await sight.do(shown, index, "type", _TYPE_SECONDS + _SECONDS_PER_CHARACTER * len(text), text=text)
        words = action.model_copy(update={"text": MASK}) if role == "input password" else action
        return await after(window, stood, aids, done(words))

    return {**ACTS, "click_element": click_element, "input_text": input_text}


async def _shown(sight: BrowserUseSight, window: Window, action: Action) -> tuple[Shown, int, str]:
    index, look = action.index or 0, window.seen
    if look is None or window.seen_tab is not await window.tabs.current():
        raise BrowserError(f"Element with index {index} not found: look at the current state.")
    role = next((one.role for one in look.elements if one.index == index), "")
    return sight.shown(window.context, look, index), index, role
