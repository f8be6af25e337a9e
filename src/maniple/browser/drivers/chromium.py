"""One Chromium for everybody, started at first use and again when it has gone."""

import asyncio
import importlib
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from maniple.browser.drivers.failures import has_ended
from maniple.browser.drivers.frames import prepare
from maniple.browser.upstream import dial
from maniple.config import BrowserSettings
from maniple.egress import Limits, Resolve, open_socks_proxy
from maniple.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import Browser as Connected
    from playwright.async_api import BrowserContext

# Playwright's own arguments keep Chromium from calling home; these leave it no way around the proxy:
# not for loopback, not by names of its own resolving, not by UDP.
_NO_WAY_AROUND = (
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--dns-prefetch-disable",
    "--no-pings",
)

# What a page may have of the world is asked of the proxy; a worker of its own outlives the look at it.
_CONTEXT: Any = {"service_workers": "block"}
_MEGABYTE = 1_000_000


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


class Chromium:
    """A Chromium process that nothing but its own proxy connects to the world.

    Raises:
        ConfigError: `browser.proxy_server` is not the address of an HTTP proxy.
    """

    def __init__(self, settings: BrowserSettings, executable: Path, resolve: Resolve) -> None:
        self._settings = settings
        self._executable = executable
        self._resolve = resolve
        self._dial = dial(settings)
        self._lock = asyncio.Lock()
        self._resources = AsyncExitStack()
        self._start: asyncio.Task[Connected] | None = None
        self._failed: asyncio.Task[Connected] | None = None
        self._closed = False

    async def new_context(self, **options: Any) -> "BrowserContext":
        """See `Contexts.new_context`; the browser is started if need be."""
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
        """End the browser and everything it started."""
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
                self._start = start = asyncio.create_task(self._launch())
        # Others may wait for the same start: one that is cancelled must not take it with it.
        await asyncio.shield(start)
        return start

    async def _launch(self) -> "Connected":
        playwright = await asyncio.to_thread(importlib.import_module, "playwright.async_api")
        async with AsyncExitStack() as stack:
            port = await stack.enter_async_context(
                open_socks_proxy(self._resolve, self._dial, _limits(self._settings))
            )
            driver = await stack.enter_async_context(playwright.async_playwright())
            await prepare(driver)
            try:
                browser = await driver.chromium.launch(
                    executable_path=self._executable,
                    headless=self._settings.headless,
                    # Root cannot have Chromium's sandbox.
                    chromium_sandbox=os.geteuid() != 0,
                    args=[f"--proxy-server=socks5://127.0.0.1:{port}", *_NO_WAY_AROUND],
                    # No secrets for a process that runs pages; a window needs to find its screen.
                    env={"LANG": "C.UTF-8"} if self._settings.headless else None,
                    # Who started us decides what a signal means; we are told by being closed.
                    handle_sigint=False,
                    handle_sigterm=False,
                    handle_sighup=False,
                )
            except playwright.Error as error:
                raise BrowserError(_launch_sentence(self._executable, str(error))) from error
            stack.push_async_callback(browser.close)
            self._resources = stack.pop_all()
        return browser


def _limits(settings: BrowserSettings) -> Limits:
    # A file may be as large as the settings say, and comes with a head.
    return Limits(bytes_each_way=max(Limits().bytes_each_way, settings.max_download_bytes + _MEGABYTE))


def _is_over(start: "asyncio.Task[Connected]") -> bool:
    if not start.done():
        return False
    return start.cancelled() or start.exception() is not None or not start.result().is_connected()


def _launch_sentence(executable: Path, message: str) -> str:
    if "No usable sandbox" in message:
        return "Chromium cannot start its sandbox here; the operator must allow this user user namespaces."
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return f"Chromium ({executable}) did not start: {lines[0] if lines else 'no reason was given'}"
