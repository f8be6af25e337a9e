"""The backend `sandbox`: the browser of a sandbox, over the HTTP API of OpenManus's sandbox tool.

Five actions are not the API's: `refresh` opens the address again, `web_search` uses our own providers, `wait`
waits here, and `go_to_url` and `open_tab` first check whether the address may be opened.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maniple.browser.actions import (
    ACTIONS,
    MASK,
    Action,
    ActionName,
    ActionResult,
    describe_stored_picture,
    failure_text,
    success_text,
)
from maniple.browser.arguments import parse_keys, require_public
from maniple.browser.drivers.sandbox.api import (
    ApiResponse,
    AutomationApi,
    NoSuchEndpointError,
    SandboxControl,
)
from maniple.browser.listing import (
    NO_SEARCH,
    ListingRow,
    describe_options,
    describe_search_results,
    render_rows,
    select_rows,
)
from maniple.browser.page import (
    BrowserState,
    Element,
    PagePicture,
    PageServices,
    PageSource,
    PageText,
    ScrollInfo,
    Tab,
)
from maniple.config import BrowserSettings
from maniple.egress import EgressResolver
from maniple.errors import BrowserError, ToolFailure

_SHOWN_OPTIONS = 100
_NO_TABS = "No browser pages available"
# What the server invents when it could not read a dropdown.
_INVENTED_OPTIONS = [{"index": n - 1, "text": f"Option {n}", "value": f"option{n}"} for n in (1, 2, 3)]


class VerbatimError(BrowserError):
    """A failure whose text is complete, so that nothing is added to it."""


@dataclass(slots=True)
class KnownTab:
    """A tab as it was last seen; the API reports the current one only."""

    tab_id: int
    url: str = ""
    title: str = ""


@dataclass(slots=True)
class SandboxView:
    """The tabs in the API's order, the last response, and what the agent was shown last."""

    tabs: list[KnownTab] = field(default_factory=lambda: [KnownTab(1)])
    current: int = 0
    latest: ApiResponse | None = None
    shown: dict[int, SandboxControl] = field(default_factory=dict)
    shown_url: str = ""
    listed: tuple[SandboxControl, ...] = ()
    """All controls of the last state, including those that were not shown."""
    next_tab_id: int = 2

    def update(self, answer: ApiResponse) -> None:
        """Store the state in a response; failures often have none."""
        if not answer.url:
            return
        self.latest = answer
        if self.tabs:
            self.tabs[self.current].url, self.tabs[self.current].title = answer.url, answer.title

    def open(self) -> int:
        """Add a new current tab; return its id."""
        self.tabs.append(KnownTab(self.next_tab_id))
        self.next_tab_id += 1
        self.current = len(self.tabs) - 1
        return self.tabs[-1].tab_id

    def close(self) -> None:
        """Remove the current tab; the API continues with the one before it."""
        del self.tabs[self.current]
        self.current = max(0, self.current - 1)

    def position_of(self, tab_id: int) -> int:
        """Return the position of a tab in the API's order; raises `BrowserError`."""
        for position, tab in enumerate(self.tabs):
            if tab.tab_id == tab_id:
                return position
        known = ", ".join(str(tab.tab_id) for tab in self.tabs)
        raise BrowserError(f"There is no tab {tab_id}; there are: {known or 'none'}.")

    def require_unchanged(self, index: int) -> SandboxControl:
        """Return the control that was shown at `index`, if it is still there.

        To the API, an index is the position among the current controls, not among those that were shown. Of
        several equal controls none can be identified; then no control may have come or gone.

        Raises:
            BrowserError: it was not shown, or another control has its index now.
        """
        control = self.shown.get(index)
        if control is None:
            raise VerbatimError(f"Element with index {index} not found")
        answer = self.latest
        now = next((one for one in answer.controls if one.index == index), None) if answer else None
        if (
            answer is None
            or answer.url != self.shown_url
            or not self._is_unchanged(now, control, answer.controls)
        ):
            raise VerbatimError(
                f"Element with index {index} not found: the page has changed since it was shown; look again."
            )
        return control

    def _is_unchanged(
        self, now: SandboxControl | None, shown: SandboxControl, controls: Sequence[SandboxControl]
    ) -> bool:
        if now is None or not _is_same(now, shown):
            return False
        alike = max(sum(_is_same(one, shown) for one in listed) for listed in (self.listed, controls))
        return alike == 1 or (len(controls) == len(self.listed) and all(map(_is_same, controls, self.listed)))

    def show(self, *, tokens: int, screenshot: bool) -> BrowserState:
        """Return the state to show to an agent; its indexes replace the earlier ones."""
        answer = self.latest
        controls = answer.controls if answer else ()
        url = answer.url if answer else ""
        known = {_identity(one) for one in self.shown.values()} if self.shown_url == url else None
        rows = select_rows([_row(line, one, known) for line, one in enumerate(controls)], tokens)
        by_index = {one.index: one for one in controls}
        shown = [row for row in rows if row.role]
        self.shown, self.shown_url = {row.index: by_index[row.index] for row in shown}, url
        self.listed = controls
        return BrowserState(
            snapshot_id=secrets.token_hex(4),
            url=url,
            title=answer.title if answer else "",
            tabs=tuple(
                Tab(tab.tab_id, tab.title, tab.url, position == self.current)
                for position, tab in enumerate(self.tabs)
            ),
            interactive_elements=render_rows(rows),
            elements=tuple(Element(row.index, row.role, row.text, row.is_new) for row in shown),
            scroll_info=ScrollInfo(answer.pixels_above, answer.pixels_below) if answer else ScrollInfo(0, 0),
            viewport_height=answer.viewport_height if answer else 0,
            screenshot=answer.screenshot if answer and screenshot else None,
        )


def _identity(control: SandboxControl) -> tuple[object, ...]:
    return control.tag, control.name, control.attributes


def _row(line: int, control: SandboxControl, known: set[tuple[object, ...]] | None) -> ListingRow:
    return ListingRow(
        line,
        control.name,
        seen=control.in_view,
        role=control.role,
        index=control.index,
        is_new=known is not None and _identity(control) not in known,
    )


def _is_same(now: SandboxControl, shown: SandboxControl) -> bool:
    # The text of a field is what was typed into it, and may change.
    if (now.tag, now.attributes) != (shown.tag, shown.attributes):
        return False
    return now.tag in ("input", "textarea", "select") or now.text == shown.text


class SandboxActions:
    """Performs actions in a sandbox's browser, and updates `view` from the responses.

    The method `do_NAME` performs the action NAME; the API cannot perform an action without such a method.
    """

    def __init__(self, api: AutomationApi, resolve: EgressResolver, settings: BrowserSettings) -> None:
        self.view = SandboxView()
        self.services = PageServices()
        self._api = api
        self._resolve = resolve
        self._settings = settings

    async def do(self, action: Action) -> ActionResult:
        """Perform an action; raises `BrowserError` or `FetchError`."""
        handler = getattr(self, f"do_{action.action}", None)
        if handler is None:
            raise BrowserError("the sandbox's browser does not have this action.")
        return await handler(action)

    async def refresh_view(self) -> None:
        """Fetch the current state; an API without this endpoint reported it with its last response."""
        try:
            await self.request("list_elements", {})
        except NoSuchEndpointError:
            return

    async def request(self, endpoint: str, fields: Mapping[str, Any]) -> ApiResponse:
        """Send a request and store the state; raises `BrowserError` with the sandbox's text for a failure."""
        answer = await self._api.ask(endpoint, fields)
        self.view.update(answer)
        return _successful(answer)

    async def do_go_to_url(self, action: Any) -> ActionResult:
        await self._navigate(action.url)
        return ActionResult(success_text(action))

    async def _navigate(self, url: str) -> None:
        await require_public(url, self._resolve)
        try:
            await self.request("navigate_to", {"url": url})
        except BrowserError as error:
            if _NO_TABS not in str(error):
                raise
            self.view.tabs.clear()
            await self._open_address(url)

    async def do_open_tab(self, action: Any) -> ActionResult:
        await require_public(action.url, self._resolve)
        await self._open_address(action.url)
        return ActionResult(success_text(action))

    async def _open_address(self, url: str) -> None:
        answer = _successful(await self._api.ask("open_tab", {"url": url}))
        self.view.open()
        self.view.update(answer)

    async def do_go_back(self, action: Any) -> ActionResult:
        before = self.view.latest.url if self.view.latest else ""
        answer = await self.request("go_back", {})
        if answer.url and answer.url == before:
            raise BrowserError("there is no page to go back to.")
        return ActionResult(success_text(action))

    async def do_refresh(self, action: Any) -> ActionResult:
        await self.refresh_view()
        if self.view.latest is None:
            raise BrowserError("no page is open.")
        await self._navigate(self.view.latest.url)
        return ActionResult(success_text(action))

    async def do_web_search(self, action: Any) -> ActionResult:
        if self.services.search is None:
            raise BrowserError(NO_SEARCH)
        found = await self.services.search(action.query)
        if not found:
            return ActionResult(f"No results were found for '{action.query}'.", changed=False)
        await self._navigate(found[0].url)
        return ActionResult(
            f"{describe_search_results(action.query or '', found)}\nNavigated to {found[0].url}"
        )

    async def do_click_element(self, action: Any) -> ActionResult:
        await self._require_shown(action.index)
        await self.request("click_element", {"index": action.index})
        return ActionResult(success_text(action))

    async def do_input_text(self, action: Any) -> ActionResult:
        control = await self._require_shown(action.index)
        await self.request("input_text", {"index": action.index, "text": action.text})
        shown = action.model_copy(update={"text": MASK}) if control.is_password else action
        return ActionResult(success_text(shown))

    async def do_scroll_down(self, action: Any) -> ActionResult:
        if action.index is not None:
            raise BrowserError("this browser scrolls only the whole page; leave out the index")
        if action.scroll_amount is None and self.view.latest is None:
            await self.refresh_view()
        amount = action.scroll_amount
        if amount is None:
            amount = self.view.latest.viewport_height if self.view.latest else 0
        # The API's own default is one window as well, for when the height is unknown.
        await self.request(action.action, {"amount": amount} if amount else {})
        direction = action.action.removeprefix("scroll_")
        return ActionResult(f"Scrolled {direction} by {amount or self._settings.viewport_height} pixels")

    do_scroll_up = do_scroll_down

    async def do_scroll_to_text(self, action: Any) -> ActionResult:
        try:
            await self.request("scroll_to_text", {"text": action.text})
        except BrowserError as error:
            raise VerbatimError(f"Failed to scroll to text: {error}") from error
        return ActionResult(success_text(action))

    async def do_send_keys(self, action: Any) -> ActionResult:
        # The API does not report which field has the focus.
        controls = self.view.latest.controls if self.view.latest else ()
        is_secret = parse_keys(action.keys) is None and any(one.is_password for one in controls)
        await self.request("send_keys", {"keys": action.keys})
        return ActionResult(success_text(action.model_copy(update={"keys": MASK}) if is_secret else action))

    async def do_get_dropdown_options(self, action: Any) -> ActionResult:
        await self._require_shown(action.index)
        answer = await self.request("get_dropdown_options", {"index": action.index})
        try:
            options = json.loads(answer.content)
        except (ValueError, RecursionError) as error:
            raise BrowserError("the sandbox sent no options that can be read.") from error
        if options == _INVENTED_OPTIONS:
            raise BrowserError("the sandbox could not read the options; click the dropdown and look instead.")
        if not isinstance(options, list):
            raise BrowserError("the sandbox sent no options that can be read.")
        text = (action.text or "").casefold()
        holding = [one for one in options if text in str(one).casefold()]
        result = describe_options(holding[:_SHOWN_OPTIONS], len(holding), len(options), action.text)
        return ActionResult(result, changed=False)

    async def do_select_dropdown_option(self, action: Any) -> ActionResult:
        await self._require_shown(action.index)
        # The parameter is `text` for OpenManus's tool, `option_text` for the server in the sandbox.
        fields = {"index": action.index, "text": action.text, "option_text": action.text}
        await self.request("select_dropdown_option", fields)
        return ActionResult(success_text(action))

    async def do_extract_content(self, action: Any) -> ActionResult:
        goal = action.goal
        content = (await self.request("extract_content", {"goal": goal})).content
        if content.strip() and self.services.extract is not None:
            content = await self.services.extract(goal, content)
        if not content.strip():
            return ActionResult("No content was extracted from the page.", changed=False)
        return ActionResult(f"Extracted from page:\n{content}\n", changed=False)

    async def do_take_screenshot(self, action: Any) -> ActionResult:
        if self.services.save_picture is None:
            raise BrowserError("there is no workspace in which the picture could be stored.")
        await self.refresh_view()
        latest = self.view.latest
        if latest is None or latest.screenshot is None:
            raise BrowserError("the sandbox sent no picture of its browser.")
        picture = PagePicture(latest.url, latest.title, latest.screenshot)
        path = await self.services.save_picture(picture)
        return ActionResult(describe_stored_picture(path), changed=False)

    async def do_switch_tab(self, action: Any) -> ActionResult:
        position = self.view.position_of(action.tab_id)
        answer = _successful(await self._api.ask("switch_tab", {"page_id": position}))
        self.view.current = position
        self.view.update(answer)
        return ActionResult(success_text(action))

    async def do_close_tab(self, action: Any) -> ActionResult:
        await self.close_tab()
        return ActionResult(success_text(action))

    async def close_tab(self) -> None:
        """Close the current tab; raises `BrowserError`."""
        if len(self.view.tabs) < 2:
            raise BrowserError("it is the last tab; go to another address instead.")
        answer = _successful(await self._api.ask("close_tab", {"page_id": self.view.current}))
        self.view.close()
        self.view.update(answer)

    async def do_wait(self, action: Any) -> ActionResult:
        seconds = min(action.seconds, self._settings.max_wait_seconds)
        await asyncio.sleep(seconds)
        return ActionResult(success_text(action.model_copy(update={"seconds": seconds})))

    async def read(self) -> PageText:
        """Return the text of the current tab, without links and status."""
        answer = await self.request("extract_content", {"goal": "all of the page's text"})
        return PageText(url=answer.url, title=answer.title, text=answer.content, links=())

    async def leave(self) -> None:
        """Close every tab but the first, and empty that one."""
        while len(self.view.tabs) > 1:
            await self.close_tab()
        if self.view.latest is not None:
            await self.request("navigate_to", {"url": "about:blank"})

    async def _require_shown(self, index: int) -> SandboxControl:
        await self.refresh_view()
        return self.view.require_unchanged(index)


def _successful(answer: ApiResponse) -> ApiResponse:
    if answer.success:
        return answer
    if answer.message.startswith("Element with index "):
        raise VerbatimError(answer.message)
    raise BrowserError(answer.message or "the sandbox's browser does not say why.")


class SandboxPage:
    """A `Page` over HTTP, for as long as `thread` has the sandbox's browser."""

    def __init__(self, thread: str, actions: SandboxActions, tokens: int) -> None:
        self.thread = thread
        self.is_closed = False
        self._actions = actions
        self._tokens = tokens
        self._lock = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._used_at = self._loop.time()

    @property
    def idle_seconds(self) -> float:
        """The time since its last use; 0 during a call."""
        return 0.0 if self._lock.locked() else self._loop.time() - self._used_at

    def with_services(self, services: PageServices) -> "SandboxPage":
        """Use these services from now on; return the page."""
        self._actions.services = services
        self._used_at = self._loop.time()
        return self

    async def observe(self, *, screenshot: bool = True) -> BrowserState:
        """See `Page.observe`; the screenshot has no marks."""
        async with self._in_use():
            await self._actions.refresh_view()
            return self._actions.view.show(tokens=self._tokens, screenshot=screenshot)

    async def act(self, action: Mapping[str, Any] | Action) -> ActionResult:
        """See `Page.act`."""
        parsed = ACTIONS.parse(action)
        async with self._in_use():
            try:
                return await self._actions.do(parsed)
            except VerbatimError:
                raise
            except ToolFailure as error:
                raise BrowserError(failure_text(parsed.action, str(error))) from error

    async def has_changed(self) -> bool:
        """See `Page.has_changed`: only another state would show it."""
        return True

    async def read(self) -> PageText:
        """See `Page.read`; links and status are missing."""
        async with self._in_use():
            return await self._actions.read()

    async def read_in_new_tab(self, url: str) -> PageText:
        """Return the text of the page at `url`; raises what `Browser.read` raises."""
        async with self._in_use():
            await self._actions.do(ACTIONS.parse({"action": "open_tab", "url": url}))
            try:
                return await self._actions.read()
            finally:
                with suppress(BrowserError):  # the text has been read
                    await self._actions.close_tab()

    async def aclose(self) -> None:
        """Close the tabs and release the browser for other threads."""
        async with self._lock:
            if self.is_closed:
                return
            self.is_closed = True
            try:
                await self._actions.leave()
            except BrowserError:
                return  # The browser is unreachable.

    @asynccontextmanager
    async def _in_use(self) -> AsyncIterator[None]:
        async with self._lock:
            if self.is_closed:
                raise BrowserError("This page was closed; ask for a new one.")
            try:
                yield
            finally:
                self._used_at = self._loop.time()


class SandboxBrowser:
    """A `Browser` at `browser.sandbox_url`.

    The API has no contexts: all users share cookies and tabs. A thread has the browser alone until its page
    is closed, or idle for `browser.idle_seconds`. The sandbox decides what its pages reach; `resolve` decides
    which addresses maniple opens there.
    """

    def __init__(self, url: str, settings: BrowserSettings, resolve: EgressResolver) -> None:
        self._settings = settings
        self._resolve = resolve
        self._api = AutomationApi(url, settings)
        self._lock = asyncio.Lock()
        self._page: SandboxPage | None = None

    @property
    def actions(self) -> tuple[ActionName, ...]:
        """See `Browser.actions`: those that the API has, or that are done with it."""
        return tuple(name for name in ACTIONS.names if hasattr(SandboxActions, f"do_{name}"))

    async def page(self, thread: str, services: PageServices | None = None) -> SandboxPage:
        """See `Browser.page`.

        Raises:
            BrowserError: another thread has the browser.
        """
        async with self._lock:
            held = self._page
            if held is None or held.is_closed:
                return self._new_page(thread, services)
            if held.thread == thread:
                return held.with_services(services or PageServices())
            if held.idle_seconds < self._settings.idle_seconds:
                raise BrowserError(
                    "The sandbox has one browser, and another conversation is using it; "
                    "try again later, or do it without a browser."
                )
            await held.aclose()
            return self._new_page(thread, services)

    async def read(self, url: str, *, thread: str) -> PageText:
        """See `Browser.read`; links and status are missing.

        Raises:
            FetchError: the address is not a public web page.
            BrowserError: the page did not load, or another thread has the browser.
        """
        held = self._page
        page = await self.page(thread)
        try:
            return await page.read_in_new_tab(url)
        finally:
            if page is not held:
                await page.aclose()

    async def source(self, url: str) -> PageSource:
        """See `Browser.source`; always raises `BrowserError`: the API has no HTML."""
        raise BrowserError(f"The sandbox's browser gives no HTML of {url}; read the page without it.")

    async def print(self, html: str) -> bytes:
        """See `Browser.print`; always raises `BrowserError`: the API cannot print."""
        raise BrowserError("The sandbox's browser cannot print; set `browser.backend: local`.")

    async def draw(self, page: Path, sources: Sequence[str], scale: int) -> list[bytes]:
        """See `Browser.draw`; always raises `BrowserError`: the page is not in the sandbox."""
        raise BrowserError("The sandbox's browser cannot draw; set `browser.backend: local`.")

    async def forget(self, thread: str) -> None:
        """See `Browser.forget`; the sandbox's own storage stays."""
        if self._page is not None and self._page.thread == thread:
            await self._page.aclose()

    async def aclose(self) -> None:
        """Release the browser and close the connections."""
        if self._page is not None:
            await self._page.aclose()
        await self._api.aclose()

    def _new_page(self, thread: str, services: PageServices | None) -> SandboxPage:
        actions = SandboxActions(self._api, self._resolve, self._settings)
        self._page = SandboxPage(thread, actions, self._settings.state_tokens).with_services(
            services or PageServices()
        )
        return self._page
