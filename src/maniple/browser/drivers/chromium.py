"""Connections with a Chromium: one that is started here, or one at a DevTools address."""

import asyncio
import importlib
import logging
import os
import shlex
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from maniple.browser.arguments import require_endpoint
from maniple.browser.drivers.authorities import write_authorities
from maniple.browser.drivers.failures import first_line, has_ended
from maniple.browser.drivers.observation import register_indexer
from maniple.browser.isolation import ChromiumFolders, ChromiumIsolation
from maniple.config import BrowserSettings
from maniple.egress import (
    ConnectionLimits,
    EgressResolver,
    EgressRoute,
    EnvironmentProxies,
    UpstreamProxy,
    open_socks_proxy,
    open_socks_socket,
)
from maniple.egress.certificates import company_authorities
from maniple.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import Browser as Connected
    from playwright.async_api import BrowserContext, Playwright

# Playwright's own arguments prevent Chromium from calling home; these prevent it from bypassing the proxy for
# loopback, by resolving names itself, and by UDP.
_PROXY_ONLY = (
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--dns-prefetch-disable",
    "--no-pings",
)

_MEGABYTE = 1_000_000
_HOME = "home"
"""In the folder of a launch; an isolated Chromium sees it as its home directory."""
_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})
_SCHEMES = ("http", "https", "ws", "wss")
# A service worker would outlive the page that started it.
_CONTEXT_OPTIONS: Any = {"service_workers": "block"}

_log = logging.getLogger(__name__)

Connect = Callable[["Playwright", AsyncExitStack], Awaitable["Connected"]]
"""Makes a connection, and pushes on the stack what must end with it. Raises `BrowserError`."""


class ContextSource(Protocol):
    """Opens browser contexts."""

    async def new_context(self, **options: Any) -> "BrowserContext":
        """Open an empty context; `options` are Playwright's.

        Raises:
            BrowserError: there is no browser, and none can be started.
            playwright.async_api.Error: it ended, twice.
        """
        ...

    async def aclose(self) -> None:
        """End what was started."""
        ...


class BrowserConnection:
    """A `ContextSource`: connects at the first use, and again after the browser ended."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._lock = asyncio.Lock()
        self._resources = AsyncExitStack()
        self._start: asyncio.Task[Connected] | None = None
        self._failed: asyncio.Task[Connected] | None = None
        self._closed = False

    async def new_context(self, **options: Any) -> "BrowserContext":
        """See `ContextSource.new_context`."""
        from playwright.async_api import Error

        start = await self._started()
        try:
            return await start.result().new_context(**_CONTEXT_OPTIONS, **options)
        except Error as error:
            # The browser or Playwright's process may have ended a moment ago, before the event came.
            if not has_ended(error):
                raise
            self._failed = start
        return await (await self._started()).result().new_context(**_CONTEXT_OPTIONS, **options)

    async def aclose(self) -> None:
        """End the connection, and what was started for it."""
        self._closed = True
        async with self._lock:
            if self._start is not None:
                # An interrupted start would leave processes behind.
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
        # Others may wait for the same start: a cancelled call must not cancel it.
        await asyncio.shield(start)
        return start

    async def _connected(self) -> "Connected":
        playwright = await asyncio.to_thread(importlib.import_module, "playwright.async_api")
        async with AsyncExitStack() as stack:
            driver = await stack.enter_async_context(playwright.async_playwright())
            await register_indexer(driver)
            browser = await self._connect(driver, stack)
            stack.push_async_callback(browser.close)
            self._resources = stack.pop_all()
        return browser


def _is_over(start: "asyncio.Task[Connected]") -> bool:
    if not start.done():
        return False
    return start.cancelled() or start.exception() is not None or not start.result().is_connected()


class Chromium(BrowserConnection):
    """A Chromium process that reaches the network only through a proxy of ours.

    With `port`, other programs on this machine can drive it as well, and it shares this machine's network. As
    root its own sandbox does not start; `isolation` then holds it.

    Raises:
        ConfigError: `browser.proxy_server` is not the address of a proxy.
    """

    def __init__(
        self,
        settings: BrowserSettings,
        executable: Path,
        resolve: EgressResolver,
        isolation: ChromiumIsolation | None = None,
        port: int | None = None,
    ) -> None:
        super().__init__(self._launch)
        self._settings = settings
        self._executable = executable
        self._route = EgressRoute(resolve, proxies=proxies_for(settings))
        self._isolation = isolation
        self._port = port

    async def _launch(self, playwright: "Playwright", stack: AsyncExitStack) -> "Connected":
        if self._isolation is None:
            root = await self._open_folder(stack)
            # Chromium's sandbox does not start as root.
            has_own_sandbox = os.geteuid() != 0
            return await self._start_process(
                playwright, await self._proxy_port(stack), has_own_sandbox, home=root / _HOME
            )
        try:
            return await self._start_isolated(playwright, stack, self._isolation, has_own_sandbox=True)
        except BrowserError as error:
            if str(error) != _NO_OWN_SANDBOX:
                raise
        # AppArmor may forbid namespaces within those of bubblewrap, which then holds it alone.
        return await self._start_isolated(playwright, stack, self._isolation, has_own_sandbox=False)

    async def _open_folder(self, stack: AsyncExitStack) -> Path:
        """Make the folder of this launch, with a home in which Chromium finds a company's authorities."""
        root = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="maniple-chromium-"))
        stack.push_async_callback(asyncio.to_thread, shutil.rmtree, root, ignore_errors=True)
        await asyncio.to_thread(_write_home, root / _HOME)
        return root

    async def _proxy_port(self, stack: AsyncExitStack) -> int:
        return await stack.enter_async_context(open_socks_proxy(self._route, _limits(self._settings)))

    async def _start_isolated(
        self,
        playwright: "Playwright",
        stack: AsyncExitStack,
        isolation: ChromiumIsolation,
        *,
        has_own_sandbox: bool,
    ) -> "Connected":
        root = await self._open_folder(stack)
        if self._port is None:
            proxy, port = root / "proxy", isolation.proxy_port
            await stack.enter_async_context(open_socks_socket(proxy, self._route, _limits(self._settings)))
        else:
            proxy, port = None, await self._proxy_port(stack)
        folders = ChromiumFolders(root, root / "downloads", self._executable, proxy)
        command = await asyncio.to_thread(_write_command, isolation, folders)
        return await self._start_process(playwright, port, has_own_sandbox, (command, folders.downloads))

    async def _start_process(
        self,
        playwright: "Playwright",
        proxy_port: int,
        has_own_sandbox: bool,
        isolated: tuple[Path, Path] | None = None,
        home: Path | None = None,
    ) -> "Connected":
        from playwright.async_api import Error

        devtools = () if self._port is None else (f"--remote-debugging-port={self._port}",)
        executable, downloads = isolated or (self._executable, None)
        headless = self._settings.headless
        try:
            return await playwright.chromium.launch(
                executable_path=executable,
                headless=headless,
                chromium_sandbox=has_own_sandbox,
                downloads_path=downloads,
                args=[f"--proxy-server=socks5://127.0.0.1:{proxy_port}", *_PROXY_ONLY, *devtools],
                # No secrets for a process that runs pages; with a window it needs the screen's variables.
                env={"LANG": "C.UTF-8", **({"HOME": str(home)} if home else {})} if headless else None,
                # The program decides what a signal means, and closes this object.
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
        except Error as error:
            held = self._isolation.explain(str(error)) if self._isolation else ""
            reason = held or _explain_launch_failure(self._executable, str(error))
            raise BrowserError(reason) from error


def _write_home(home: Path) -> None:
    home.mkdir(mode=0o700)
    if (authorities := company_authorities()) and (failure := write_authorities(home, authorities)):
        _log.warning(
            "Chromium does not trust the %d certificate authorities that this system adds: %s.",
            len(authorities),
            failure,
        )


def _write_command(isolation: ChromiumIsolation, folders: ChromiumFolders) -> Path:
    """Write a program that starts Chromium isolated; Playwright starts one file. Blocks on disk."""
    argv = shlex.join(isolation.build_argv(folders))
    command = folders.root / "chromium"
    # Of two profiles the last one counts; Playwright's own is not visible inside.
    command.write_text(f'#!/bin/sh\nexec {argv} "$@" --user-data-dir=/tmp/profile\n')
    command.chmod(0o700)
    return command


def _limits(settings: BrowserSettings) -> ConnectionLimits:
    # A download may be as large as the settings allow, plus its HTTP header.
    return ConnectionLimits(
        bytes_each_way=max(ConnectionLimits().bytes_each_way, settings.max_download_bytes + _MEGABYTE)
    )


_NO_OWN_SANDBOX = "Chromium cannot start its sandbox here; the operator must allow this user user namespaces."


def _explain_launch_failure(executable: Path, message: str) -> str:
    if "No usable sandbox" in message:
        return _NO_OWN_SANDBOX
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return f"Chromium ({executable}) did not start: {lines[0] if lines else 'no reason was given'}"


class RemoteChromium(BrowserConnection):
    """Contexts of our own in the Chromium at `url`, the setting `browser.cdp_url`.

    Contexts of others stay untouched. Its pages can reach every address that it can reach, because there is
    no proxy in between.

    Raises:
        ConfigError: `url` is no valid address.
    """

    def __init__(self, url: str, timeout_seconds: float) -> None:
        super().__init__(self._attach)
        self._url = require_endpoint("browser.cdp_url", url, _SCHEMES)
        self._timeout_seconds = timeout_seconds

    async def _attach(self, playwright: "Playwright", stack: AsyncExitStack) -> "Connected":
        from playwright.async_api import Error

        try:
            return await playwright.chromium.connect_over_cdp(
                self._url,
                timeout=self._timeout_seconds * 1000,
                # Then downloads and uploads pass through the disk.
                is_local=urlsplit(self._url).hostname in _THIS_MACHINE,
                # Do not change the settings of its other contexts.
                no_defaults=True,
            )
        except Error as error:
            raise BrowserError(
                f"The Chromium at {_redact_url(self._url)} {_explain_connect_failure(str(error))}"
            ) from error


def _explain_connect_failure(message: str) -> str:
    if "ECONNREFUSED" in message or "ENOTFOUND" in message or "EHOSTUNREACH" in message:
        return "cannot be reached. Start it with --remote-debugging-port, or correct browser.cdp_url."
    if "Timeout" in message:
        return "does not answer. Is browser.cdp_url the address of a Chromium's DevTools?"
    if "Unexpected status" in message or "404" in message or "JSON" in message:
        return "is none: what answers there is no DevTools. Correct browser.cdp_url."
    return f"cannot be used ({first_line(message)}). Is browser.cdp_url the address of a current Chromium?"


def _redact_url(url: str) -> str:
    # The address of a hosted browser contains its key.
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def proxies_for(settings: BrowserSettings) -> EnvironmentProxies:
    """Return `browser.proxy_server` for every address, or without it the proxies of the environment.

    Raises:
        ConfigError: it is not the address of a proxy.
    """
    if settings.proxy_server is None:
        return EnvironmentProxies.read()
    named = UpstreamProxy.parse(settings.proxy_server, "browser.proxy_server")
    if settings.proxy_username:
        password = settings.proxy_password.get_secret_value() if settings.proxy_password else ""
        named = replace(named, username=settings.proxy_username, password=password)
    return EnvironmentProxies.only(named.address, "browser.proxy_server")
