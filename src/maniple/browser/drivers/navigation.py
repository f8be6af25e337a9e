"""Going to addresses, back, and there again."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from maniple.browser.actions import Action, ActionResult
from maniple.browser.addresses import require_public
from maniple.browser.drivers.failures import Unable, has_crashed, has_ended, is_download, unopened
from maniple.browser.drivers.outcome import after, before, download_begun
from maniple.browser.drivers.tabs import Tab
from maniple.browser.drivers.window import Window
from maniple.browser.page import Aids
from maniple.browser.wording import NO_SEARCH, done, search_results
from maniple.errors import FetchError

if TYPE_CHECKING:
    from playwright.async_api import Response

_LOADED_MILLISECONDS = 5_000
_STAYS = "the page asked not to be left, so it is still there; finish what was begun in it, or use open_tab"
_TRIED_RESULTS = 3


async def go_to_url(window: Window, action: Action, aids: Aids) -> ActionResult:
    """Open an address in the current tab."""
    url = action.url or ""
    await require_public(url, window.fittings.resolve)
    stood = before(window, await window.tabs.current())
    await _open(window, stood.tab, url)
    return await after(window, stood, aids, done(action))


async def open_tab(window: Window, action: Action, aids: Aids) -> ActionResult:
    """Open an address in a new tab."""
    url = action.url or ""
    await require_public(url, window.fittings.resolve)
    stood = before(window, await window.tabs.open())
    await _open(window, stood.tab, url)
    return await after(window, stood, aids, done(action))


async def go_back(window: Window, action: Action, aids: Aids) -> ActionResult:
    """Go to the page that was before in this tab."""
    stood = before(window, await window.tabs.current())
    page = stood.tab.page
    if not await _has_earlier(stood.tab):
        raise Unable("this tab has no earlier page")
    milliseconds = window.settings.timeout_seconds * 1000
    await _went(
        window, stood.tab, "the earlier page", page.go_back(wait_until="commit", timeout=milliseconds)
    )
    return await after(window, stood, aids, done(action))


async def refresh(window: Window, action: Action, aids: Aids) -> ActionResult:
    """Load the page again."""
    stood = before(window, await window.tabs.current())
    page = stood.tab.page
    milliseconds = window.settings.timeout_seconds * 1000
    await _went(window, stood.tab, page.url, page.reload(wait_until="commit", timeout=milliseconds))
    return await after(window, stood, aids, done(action))


async def web_search(window: Window, action: Action, aids: Aids) -> ActionResult:
    """Search, and open the first result that can be opened."""
    query = action.query or ""
    if aids.search is None:
        raise Unable(NO_SEARCH)
    results = await aids.search(query)
    if not results:
        return ActionResult(f"No results were found for '{query}'; search for other words.", changed=False)
    stood = before(window, await window.tabs.current())
    told = search_results(query, results)
    for result in results[:_TRIED_RESULTS]:
        try:
            await require_public(result.url, window.fittings.resolve)
            await _open(window, stood.tab, result.url)
        except (Unable, FetchError) as error:
            told += f"\nNot opened: {error}"
            continue
        return await after(window, stood, aids, f"{told}\nNavigated to {result.url}")
    return ActionResult(told)


async def _open(window: Window, tab: Tab, url: str) -> None:
    from playwright.async_api import Error

    milliseconds = window.settings.timeout_seconds * 1000
    try:
        response = await _went(
            window, tab, url, tab.page.goto(url, wait_until="commit", timeout=milliseconds)
        )
    except Error as error:
        # The page before had crashed, and nobody knew yet: it is not what is asked for.
        if not _is_cut_off(tab, error):
            raise
        await window.tabs.replace(tab)
        response = await _went(
            window, tab, url, tab.page.goto(url, wait_until="commit", timeout=milliseconds)
        )
    if response is not None and response.status >= 400:
        window.notices.add(f"The server answered {response.status} for {url}.")
    with suppress(Error):  # what is there by then is shown
        await tab.page.wait_for_load_state("domcontentloaded", timeout=_LOADED_MILLISECONDS)


async def _went(
    window: Window, tab: Tab, where: str, going: "Coroutine[Any, Any, Response | None]"
) -> "Response | None":
    """Wait until a tab is where it was sent, or a file comes from there."""
    from playwright.async_api import Error
    from playwright.async_api import TimeoutError as TooLateError

    await window.dialogs.quieten(tab.page)
    task = asyncio.create_task(going)
    refused = asyncio.create_task(window.dialogs.refused_to_leave.wait())
    try:
        await asyncio.wait((task, refused), return_when=asyncio.FIRST_COMPLETED)
        if window.dialogs.refused_to_leave.is_set():
            raise Unable(_STAYS)
        return task.result()
    except TooLateError as error:
        await window.check(tab)
        raise Unable(f"{where} took too long to load; try another source.") from error
    except Error as error:
        if not await _is_gone_elsewhere(window, tab, error):
            raise Unable(unopened(where, error)) from error
        return None
    finally:
        for waiting in (task, refused):
            waiting.cancel()
        await asyncio.gather(task, refused, return_exceptions=True)


async def _is_gone_elsewhere(window: Window, tab: Tab, error: Exception) -> bool:
    """Whether something else came instead; raises the error when what was to show the page has ended."""
    if "interrupted by another navigation" in str(error):
        return True  # by the page itself, which knows where it wants to be
    if is_download(error) and await download_begun(window):
        return True
    if has_ended(error) or _is_cut_off(tab, error):
        raise error
    return False


def _is_cut_off(tab: Tab, error: Exception) -> bool:
    """Whether the page that was there crashed while it was left."""
    return tab.is_broken or has_crashed(error)


async def _has_earlier(tab: Tab) -> bool:
    session = await tab.page.context.new_cdp_session(tab.page)
    history = await session.send("Page.getNavigationHistory")
    await session.detach()
    earlier = history["entries"][: history["currentIndex"]]
    return bool(earlier) and earlier[-1]["url"] != "about:blank"
