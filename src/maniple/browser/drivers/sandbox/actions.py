"""The 17 actions, in the API's words.

Five of ours are none of the API's: `refresh` opens the address again, `web_search` asks our own providers,
`wait` waits here, and `go_to_url` and `open_tab` ask first whether the address may be opened.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from maniple.browser.actions import Action, ActionName, ActionResult
from maniple.browser.addresses import require_public
from maniple.browser.chords import pressed
from maniple.browser.drivers.sandbox.answer import Answer, Control
from maniple.browser.drivers.sandbox.api import AutomationApi, NoSuchEndpointError
from maniple.browser.drivers.sandbox.view import FinalWordsError, View
from maniple.browser.page import Aids, PageText
from maniple.browser.wording import MASK, NO_SEARCH, done, options_listed, search_results
from maniple.config import BrowserSettings
from maniple.egress import EgressResolver
from maniple.errors import BrowserError

_SHOWN_OPTIONS = 100
_NO_TABS = "No browser pages available"
# What the server makes up when it could not read a dropdown.
_MADE_UP = [{"index": n - 1, "text": f"Option {n}", "value": f"option{n}"} for n in (1, 2, 3)]


class Hands:
    """Does one action after another in a sandbox's browser, and keeps `view` as it is told."""

    def __init__(self, api: AutomationApi, resolve: EgressResolver, settings: BrowserSettings) -> None:
        self.view = View()
        self.aids = Aids()
        self._api = api
        self._resolve = resolve
        self._settings = settings

    async def do(self, action: Action) -> ActionResult:
        """Do it; raises `BrowserError` or `FetchError`."""
        doing: Mapping[ActionName, Callable[[Action], Awaitable[ActionResult]]] = {
            "go_to_url": self._go_to_url,
            "open_tab": self._open_tab,
            "go_back": self._go_back,
            "refresh": self._refresh,
            "web_search": self._web_search,
            "click_element": self._click,
            "input_text": self._input,
            "scroll_down": self._scroll,
            "scroll_up": self._scroll,
            "scroll_to_text": self._scroll_to_text,
            "send_keys": self._send_keys,
            "get_dropdown_options": self._options,
            "select_dropdown_option": self._select,
            "extract_content": self._extract,
            "switch_tab": self._switch_tab,
            "close_tab": self._close_tab,
            "wait": self._wait,
        }
        return await doing[action.action](action)

    async def refresh_view(self) -> None:
        """Learn what the page is now; an API that cannot say has told with its last answer."""
        try:
            await self.told("list_elements", {})
        except NoSuchEndpointError:
            return

    async def told(self, endpoint: str, fields: Mapping[str, Any]) -> Answer:
        """Ask, and heed the answer; raises `BrowserError` with the sandbox's words for a failure."""
        answer = await self._api.ask(endpoint, fields)
        self.view.hear(answer)
        return _successful(answer)

    async def _go_to_url(self, action: Action) -> ActionResult:
        await self._navigate(action.url or "")
        return ActionResult(done(action))

    async def _navigate(self, url: str) -> None:
        await require_public(url, self._resolve)
        try:
            await self.told("navigate_to", {"url": url})
        except BrowserError as error:
            if _NO_TABS not in str(error):
                raise
            self.view.tabs.clear()
            await self._opened(url)

    async def _open_tab(self, action: Action) -> ActionResult:
        await require_public(action.url or "", self._resolve)
        await self._opened(action.url or "")
        return ActionResult(done(action))

    async def _opened(self, url: str) -> None:
        answer = _successful(await self._api.ask("open_tab", {"url": url}))
        self.view.open()
        self.view.hear(answer)

    async def _go_back(self, action: Action) -> ActionResult:
        before = self.view.latest.url if self.view.latest else ""
        answer = await self.told("go_back", {})
        if answer.url and answer.url == before:
            raise BrowserError("there is no page to go back to.")
        return ActionResult(done(action))

    async def _refresh(self, action: Action) -> ActionResult:
        await self.refresh_view()
        if self.view.latest is None:
            raise BrowserError("no page is open.")
        await self._navigate(self.view.latest.url)
        return ActionResult(done(action))

    async def _web_search(self, action: Action) -> ActionResult:
        if self.aids.search is None:
            raise BrowserError(NO_SEARCH)
        found = await self.aids.search(action.query or "")
        if not found:
            return ActionResult(f"No results were found for '{action.query}'.", changed=False)
        await self._navigate(found[0].url)
        return ActionResult(f"{search_results(action.query or '', found)}\nNavigated to {found[0].url}")

    async def _click(self, action: Action) -> ActionResult:
        await self._require_shown(action.index)
        await self.told("click_element", {"index": action.index})
        return ActionResult(done(action))

    async def _input(self, action: Action) -> ActionResult:
        control = await self._require_shown(action.index)
        await self.told("input_text", {"index": action.index, "text": action.text})
        shown = action.model_copy(update={"text": MASK}) if control.is_password else action
        return ActionResult(done(shown))

    async def _scroll(self, action: Action) -> ActionResult:
        if action.scroll_amount is None and self.view.latest is None:
            await self.refresh_view()
        amount = action.scroll_amount
        if amount is None:
            amount = self.view.latest.viewport_height if self.view.latest else 0
        # The API's own default is a window, too; without the window's height it is left to it.
        await self.told(action.action, {"amount": amount} if amount else {})
        direction = action.action.removeprefix("scroll_")
        return ActionResult(f"Scrolled {direction} by {amount or self._settings.viewport_height} pixels")

    async def _scroll_to_text(self, action: Action) -> ActionResult:
        try:
            await self.told("scroll_to_text", {"text": action.text})
        except BrowserError as error:
            raise FinalWordsError(f"Failed to scroll to text: {error}") from error
        return ActionResult(done(action))

    async def _send_keys(self, action: Action) -> ActionResult:
        # Which field has the focus, the API does not say.
        controls = self.view.latest.controls if self.view.latest else ()
        is_secret = pressed(action.keys or "") is None and any(one.is_password for one in controls)
        await self.told("send_keys", {"keys": action.keys})
        return ActionResult(done(action.model_copy(update={"keys": MASK}) if is_secret else action))

    async def _options(self, action: Action) -> ActionResult:
        await self._require_shown(action.index)
        answer = await self.told("get_dropdown_options", {"index": action.index})
        try:
            options = json.loads(answer.content)
        except (ValueError, RecursionError) as error:
            raise BrowserError("the sandbox sent no options that can be read.") from error
        if options == _MADE_UP:
            raise BrowserError("the sandbox could not read the options; click the dropdown and look instead.")
        if not isinstance(options, list):
            raise BrowserError("the sandbox sent no options that can be read.")
        text = (action.text or "").casefold()
        holding = [one for one in options if text in str(one).casefold()]
        words = options_listed(holding[:_SHOWN_OPTIONS], len(holding), len(options), action.text)
        return ActionResult(words, changed=False)

    async def _select(self, action: Action) -> ActionResult:
        await self._require_shown(action.index)
        # OpenManus's tool calls it `text`, the server in the sandbox `option_text`.
        fields = {"index": action.index, "text": action.text, "option_text": action.text}
        await self.told("select_dropdown_option", fields)
        return ActionResult(done(action))

    async def _extract(self, action: Action) -> ActionResult:
        goal = action.goal or ""
        content = (await self.told("extract_content", {"goal": goal})).content
        if content.strip() and self.aids.extract is not None:
            content = await self.aids.extract(goal, content)
        if not content.strip():
            return ActionResult("No content was extracted from the page.", changed=False)
        return ActionResult(f"Extracted from page:\n{content}\n", changed=False)

    async def _switch_tab(self, action: Action) -> ActionResult:
        place = self.view.place(action.tab_id)
        answer = _successful(await self._api.ask("switch_tab", {"page_id": place}))
        self.view.current = place
        self.view.hear(answer)
        return ActionResult(done(action))

    async def _close_tab(self, action: Action) -> ActionResult:
        await self.close_tab()
        return ActionResult(done(action))

    async def close_tab(self) -> None:
        """Close the current tab; raises `BrowserError`."""
        if len(self.view.tabs) < 2:
            raise BrowserError("it is the last tab; go to another address instead.")
        answer = _successful(await self._api.ask("close_tab", {"page_id": self.view.current}))
        self.view.close()
        self.view.hear(answer)

    async def _wait(self, action: Action) -> ActionResult:
        seconds = min(action.seconds, self._settings.max_wait_seconds)
        await asyncio.sleep(seconds)
        return ActionResult(done(action.model_copy(update={"seconds": seconds})))

    async def read(self) -> PageText:
        """Return the text of the current tab; the API tells no links and no status."""
        answer = await self.told("extract_content", {"goal": "all of the page's text"})
        return PageText(url=answer.url, title=answer.title, text=answer.content, links=())

    async def leave(self) -> None:
        """Close every tab but the first, which shows nothing then."""
        while len(self.view.tabs) > 1:
            await self.close_tab()
        if self.view.latest is not None:
            await self.told("navigate_to", {"url": "about:blank"})

    async def _require_shown(self, index: int | None) -> Control:
        await self.refresh_view()
        return self.view.require_unchanged(index)


def _successful(answer: Answer) -> Answer:
    if answer.success:
        return answer
    if answer.message.startswith("Element with index "):
        raise FinalWordsError(answer.message)
    raise BrowserError(answer.message or "the sandbox's browser does not say why.")
