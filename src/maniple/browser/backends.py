"""The browsers that `browser.backend` can name."""

import asyncio
import importlib.util
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from maniple.browser.drivers.acts import ACTS
from maniple.browser.drivers.chromium import Chromium
from maniple.browser.drivers.playwright import PlaywrightBrowser
from maniple.browser.drivers.remote import RemoteChromium
from maniple.browser.drivers.sight import OwnSight
from maniple.browser.drivers.window import Fittings
from maniple.browser.executable import find_executable
from maniple.browser.page import Browser
from maniple.browser.storage import Storage
from maniple.config import BrowserSettings
from maniple.egress import EgressResolver
from maniple.reading.fork_server import ForkServer
from maniple.types import Unavailable, installing


@dataclass(frozen=True, slots=True)
class Places:
    """Where on this machine a browser puts things."""

    downloads: Path | None = None
    """Files that nobody else keeps; without it they go with the browser."""
    storage: Storage | None = None
    """Cookies and local storage, if they are kept."""


@asynccontextmanager
async def open_backend(
    settings: BrowserSettings, resolve: EgressResolver, places: Places
) -> AsyncIterator[Browser | Unavailable]:
    """The browser of `browser.backend`, or what it lacks; `open_browser` says the rest.

    Raises:
        ConfigError: an address in the settings is none.
    """
    match settings.backend:
        case "sandbox":
            opening = _sandbox(settings, resolve)
        case "cdp":
            opening = _remote(settings, resolve, places)
        case "browser-use":
            opening = _browser_use(settings, resolve, places)
        case "local":
            opening = _local(settings, resolve, places)
    async with opening as browser:
        yield browser


@asynccontextmanager
async def _local(
    settings: BrowserSettings, resolve: EgressResolver, places: Places
) -> AsyncIterator[Browser | Unavailable]:
    executable = await asyncio.to_thread(find_executable, settings)
    if isinstance(executable, Unavailable):
        yield executable
        return

    def start() -> Chromium:
        return Chromium(settings, executable, resolve)

    async with AsyncExitStack() as stack:
        fittings = await stack.enter_async_context(_fitted(settings, resolve, places))
        own = start if settings.process_per_thread else None
        yield await stack.enter_async_context(aclosing(PlaywrightBrowser(fittings, start(), own)))


@asynccontextmanager
async def _remote(
    settings: BrowserSettings, resolve: EgressResolver, places: Places
) -> AsyncIterator[Browser | Unavailable]:
    if settings.cdp_url is None:
        yield Unavailable("The Chromium to connect with has no address.", "set `browser.cdp_url`.")
        return
    contexts = RemoteChromium(settings.cdp_url, settings.timeout_seconds)
    async with AsyncExitStack() as stack:
        fittings = await stack.enter_async_context(_fitted(settings, resolve, places))
        yield await stack.enter_async_context(aclosing(PlaywrightBrowser(fittings, contexts)))


@asynccontextmanager
async def _browser_use(
    settings: BrowserSettings, resolve: EgressResolver, places: Places
) -> AsyncIterator[Browser | Unavailable]:
    from maniple.browser.drivers.browser_use import BrowserUseSight, WatchedChromium, acts_of

    if importlib.util.find_spec("browser_use") is None:
        yield Unavailable("browser-use is not installed.", f"run {installing('browser-use')}.")
        return
    executable = await asyncio.to_thread(find_executable, settings)
    if isinstance(executable, Unavailable):
        yield executable
        return
    sight = BrowserUseSight()

    def start() -> WatchedChromium:
        return WatchedChromium(settings, executable, resolve, sight)

    async with AsyncExitStack() as stack:
        fittings = await stack.enter_async_context(_fitted(settings, resolve, places))
        fittings = replace(fittings, sight=sight, acts=acts_of(sight))
        shared = Chromium(settings, executable, resolve)
        yield await stack.enter_async_context(aclosing(PlaywrightBrowser(fittings, shared, start)))


@asynccontextmanager
async def _sandbox(
    settings: BrowserSettings, resolve: EgressResolver
) -> AsyncIterator[Browser | Unavailable]:
    from maniple.browser.drivers.sandbox import SandboxBrowser

    if settings.sandbox_url is None:
        yield Unavailable("The sandbox's browser has no address.", "set `browser.sandbox_url`.")
        return
    async with aclosing(SandboxBrowser(settings.sandbox_url, settings, resolve)) as browser:
        yield browser


@asynccontextmanager
async def _fitted(
    settings: BrowserSettings, resolve: EgressResolver, places: Places
) -> AsyncIterator[Fittings]:
    async with AsyncExitStack() as stack:
        folder = places.downloads or await _temporary_folder(stack)
        fork_server = ForkServer()
        stack.callback(fork_server.close)
        yield Fittings(settings, resolve, OwnSight(), ACTS, fork_server, folder, places.storage)


async def _temporary_folder(stack: AsyncExitStack) -> Path:
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="maniple-"))  # for its owner alone
    stack.push_async_callback(asyncio.to_thread, shutil.rmtree, folder, ignore_errors=True)
    return folder
