"""A connection with a browser: made at first use, and again when the browser has gone."""

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Protocol

from maniple.browser.drivers.failures import has_ended
from maniple.browser.drivers.frames import prepare
from maniple.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import Browser as Connected
    from playwright.async_api import BrowserContext, Playwright

Connect = Callable[["Playwright", AsyncExitStack], Awaitable["Connected"]]
"""Makes a connection; what must end with it goes on the stack. Raises `BrowserError`."""

# What a page may have of the world is asked of the proxy; a worker of its own outlives the look at it.
_CONTEXT: Any = {"service_workers": "block"}


class Contexts(Protocol):
    """Where browser contexts come from: a Chromium that is started here, or one that is elsewhere."""

    async def new_context(self, **options: Any) -> "BrowserContext":
        """A context with nothing in it; `options` are Playwright's.

        Raises:
            BrowserError: there is no browser, and none can be started.
            playwright.async_api.Error: it ended, twice.
        """
        ...

    async def aclose(self) -> None:
        """Give back what was started."""
        ...


class Connection:
    """`Contexts` of the browser that `connect` connects with."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._lock = asyncio.Lock()
        self._resources = AsyncExitStack()
        self._start: asyncio.Task[Connected] | None = None
        self._failed: asyncio.Task[Connected] | None = None
        self._closed = False

    async def new_context(self, **options: Any) -> "BrowserContext":
        """See `Contexts.new_context`."""
        from playwright.async_api import Error

        start = await self._started()
        try:
            return await start.result().new_context(**_CONTEXT, **options)
        except Error as error:
            # It or Playwright's process may have ended a moment ago, before anybody was told.
            if not has_ended(error):
                raise
            self._failed = start
        return await (await self._started()).result().new_context(**_CONTEXT, **options)

    async def aclose(self) -> None:
        """End the connection, and what was started for it."""
        self._closed = True
        async with self._lock:
            if self._start is not None:
                # A start that is interrupted would leave processes behind.
                await asyncio.wait([self._start])
            await self._resources.aclose()

    async def _started(self) -> "asyncio.Task[Connected]":
        async with self._lock:
            if self._closed:
                raise BrowserError("The browser has been closed; start a new run.")
            start = self._start
            if start is None or start is self._failed or _is_over(start):
                await self._resources.aclose()
                self._start = start = asyncio.create_task(self._connected())
        # Others may wait for the same start: one that is cancelled must not take it with it.
        await asyncio.shield(start)
        return start

    async def _connected(self) -> "Connected":
        playwright = await asyncio.to_thread(importlib.import_module, "playwright.async_api")
        async with AsyncExitStack() as stack:
            driver = await stack.enter_async_context(playwright.async_playwright())
            await prepare(driver)
            browser = await self._connect(driver, stack)
            stack.push_async_callback(browser.close)
            self._resources = stack.pop_all()
        return browser


def _is_over(start: "asyncio.Task[Connected]") -> bool:
    if not start.done():
        return False
    return start.cancelled() or start.exception() is not None or not start.result().is_connected()
