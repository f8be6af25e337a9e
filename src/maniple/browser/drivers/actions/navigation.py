"""Actions that navigate: to an address, in a new tab, back, again, and to the first result of a search."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from maniple.browser.actions import Action, ActionResult, PageUrl, Query, action, success_text
from maniple.browser.arguments import require_public
from maniple.browser.drivers.failures import (
    ActionFailedError,
    explain_unopened,
    has_crashed,
    has_ended,
    is_download,
)
from maniple.browser.drivers.tabs import OpenTab
from maniple.browser.drivers.window import BrowserWindow
from maniple.browser.listing import NO_SEARCH, describe_search_results
from maniple.browser.page import PageServices
from maniple.errors import FetchError

if TYPE_CHECKING:
    from playwright.async_api import Response

_LOADED_MILLISECONDS = 5_000
_STAYS = "the page asked not to be left, so it is still there; finish what was begun in it, or use open_tab"
_TRIED_RESULTS = 3


class AddressAction(Action):
    url: PageUrl


class SearchAction(Action):
    query: Query


@action(
    "go_to_url",
    AddressAction,
    kind="move",
    line="tabs",
    prompt="go_to_url (url)",
    done="Navigated to {url}",
)
async def go_to_url(window: BrowserWindow, action: AddressAction, services: PageServices) -> ActionResult:
    """Open an address in the current tab."""
    await require_public(action.url, window.resources.resolve)
    start = window.start_action(await window.tabs.current())
    await _open(window, start.tab, action.url)
    return await window.finish_action(start, services, success_text(action))


@action(
    "open_tab",
    AddressAction,
    kind="move",
    line="tabs",
    prompt="open_tab (url)",
    done="Opened new tab with {url}",
)
async def open_tab(window: BrowserWindow, action: AddressAction, services: PageServices) -> ActionResult:
    """Open an address in a new tab."""
    await require_public(action.url, window.resources.resolve)
    start = window.start_action(await window.tabs.open())
    await _open(window, start.tab, action.url)
    return await window.finish_action(start, services, success_text(action))


@action("go_back", Action, kind="move", line="tabs", prompt="go_back", done="Navigated back")
async def go_back(window: BrowserWindow, action: Action, services: PageServices) -> ActionResult:
    """Go back to the tab's previous page."""
    start = window.start_action(await window.tabs.current())
    if not await _has_previous_page(start.tab):
        raise ActionFailedError("this tab has no earlier page")
    milliseconds = window.settings.timeout_seconds * 1000
    going = start.tab.page.go_back(wait_until="commit", timeout=milliseconds)
    await _navigate(window, start.tab, "the earlier page", going)
    return await window.finish_action(start, services, success_text(action))


@action("refresh", Action, kind="move", line="tabs", prompt="refresh", done="Refreshed current page")
async def refresh(window: BrowserWindow, action: Action, services: PageServices) -> ActionResult:
    """Load the page again."""
    start = window.start_action(await window.tabs.current())
    page = start.tab.page
    milliseconds = window.settings.timeout_seconds * 1000
    await _navigate(window, start.tab, page.url, page.reload(wait_until="commit", timeout=milliseconds))
    return await window.finish_action(start, services, success_text(action))


@action(
    "web_search",
    SearchAction,
    kind="search",
    line="search",
    prompt="web_search (query): search, and open the first result",
    has_own_limits=True,
)
async def web_search(window: BrowserWindow, action: SearchAction, services: PageServices) -> ActionResult:
    """Search, and open the first result that can be opened."""
    query = action.query
    if services.search is None:
        raise ActionFailedError(NO_SEARCH)
    results = await services.search(query)
    if not results:
        return ActionResult(f"No results were found for '{query}'; search for other words.", changed=False)
    start = window.start_action(await window.tabs.current())
    text = describe_search_results(query, results)
    for result in results[:_TRIED_RESULTS]:
        try:
            await require_public(result.url, window.resources.resolve)
            await _open(window, start.tab, result.url)
        except (ActionFailedError, FetchError) as error:
            text += f"\nNot opened: {error}"
            continue
        return await window.finish_action(start, services, f"{text}\nNavigated to {result.url}")
    return ActionResult(text)


async def _open(window: BrowserWindow, tab: OpenTab, url: str) -> None:
    from playwright.async_api import Error

    milliseconds = window.settings.timeout_seconds * 1000
    try:
        going = tab.page.goto(url, wait_until="commit", timeout=milliseconds)
        response = await _navigate(window, tab, url, going)
    except Error as error:
        # The previous page had crashed unnoticed; that does not concern the new one.
        if not _is_cut_off(tab, error):
            raise
        await window.tabs.replace(tab)
        going = tab.page.goto(url, wait_until="commit", timeout=milliseconds)
        response = await _navigate(window, tab, url, going)
    if response is not None and response.status >= 400:
        window.notices.add(f"The server answered {response.status} for {url}.")
    with suppress(Error):  # the part that has loaded by then is shown
        await tab.page.wait_for_load_state("domcontentloaded", timeout=_LOADED_MILLISECONDS)


async def _navigate(
    window: BrowserWindow, tab: OpenTab, where: str, going: "Coroutine[Any, Any, Response | None]"
) -> "Response | None":
    """Wait until a tab shows its new page, or a download begins instead."""
    from playwright.async_api import Error
    from playwright.async_api import TimeoutError as TooLateError

    await window.dialogs.silence(tab.page)
    task = asyncio.create_task(going)
    refused = asyncio.create_task(window.dialogs.refused_to_leave.wait())
    try:
        await asyncio.wait((task, refused), return_when=asyncio.FIRST_COMPLETED)
        if window.dialogs.refused_to_leave.is_set():
            raise ActionFailedError(_STAYS)
        return task.result()
    except TooLateError as error:
        await window.is_responsive(tab)
        raise ActionFailedError(f"{where} took too long to load; try another source.") from error
    except Error as error:
        if not await _is_superseded(window, tab, error):
            raise ActionFailedError(explain_unopened(where, error)) from error
        return None
    finally:
        for waiting in (task, refused):
            waiting.cancel()
        await asyncio.gather(task, refused, return_exceptions=True)


async def _is_superseded(window: BrowserWindow, tab: OpenTab, error: Exception) -> bool:
    """Return whether something else came instead; raise `error` if the page's process or browser ended."""
    if "interrupted by another navigation" in str(error):
        return True  # by the page itself
    if is_download(error) and await window.wait_for_download():
        return True
    if has_ended(error) or _is_cut_off(tab, error):
        raise error
    return False


def _is_cut_off(tab: OpenTab, error: Exception) -> bool:
    """Return whether the previous page crashed during the navigation."""
    return tab.is_broken or has_crashed(error)


async def _has_previous_page(tab: OpenTab) -> bool:
    session = await tab.page.context.new_cdp_session(tab.page)
    history = await session.send("Page.getNavigationHistory")
    await session.detach()
    earlier = history["entries"][: history["currentIndex"]]
    return bool(earlier) and earlier[-1]["url"] != "about:blank"
