"""Opening the browser that the settings name."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from platformdirs import user_cache_path

from maniple.browser.drivers.browser_use.environment import BrowserUseEnvironment
from maniple.browser.drivers.chromium import Chromium, ContextSource, RemoteChromium, proxies_for
from maniple.browser.drivers.observation import IndexerObserver
from maniple.browser.drivers.playwright import PlaywrightBrowser
from maniple.browser.drivers.session import BrowserStorage
from maniple.browser.drivers.window import WindowResources
from maniple.browser.isolation import ChromiumIsolation
from maniple.browser.page import Browser
from maniple.config import BrowserSettings
from maniple.config.web_settings import FetchSettings
from maniple.egress import AddressGuard, EgressResolver
from maniple.errors import ConfigError, Unavailable
from maniple.reading.fork_server import ForkServer

# The shell comes first: it needs half the memory of the full browser and sends no requests to Google.
_HEADLESS_NAMES = ("chromium-headless-shell",)
_FULL_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


@asynccontextmanager
async def open_browser(
    settings: BrowserSettings,
    resolve: EgressResolver | None = None,
    *,
    downloads: Path | None = None,
    storage: Path | None = None,
    isolation: ChromiumIsolation | None = None,
) -> AsyncIterator[Browser]:
    """Open the browser that the settings name; no process starts before the first page.

    Args:
        resolve: returns the address for a host and port, or raises `FetchError` to refuse the connection.
            Default: public addresses and the networks of `settings.allow_private`.
        downloads: the folder for downloads that `PageServices.save_file` does not take. Default: a temporary
            folder that is deleted with the browser.
        storage: the folder for cookies and local storage if `browser.keep_storage` is set.
        isolation: holds a Chromium that is started here (`maniple.sandbox.find_chromium_isolation`). Without
            it, Chromium runs unprotected where this process is root.

    Raises:
        Unavailable: there is no browser; the message says how to install or configure one.
        ConfigError: an address or a network in the settings is invalid, or the storage folder is missing.
    """
    if not settings.enabled:
        raise Unavailable("The browser is turned off.", "set `browser.enabled: true`.")
    if resolve is None:
        fetch = FetchSettings(allow_private=settings.allow_private or ())
        resolve = AddressGuard(fetch, proxies_for(settings)).resolve
    saved = _storage_in(storage, settings)
    if settings.backend == "sandbox":
        opening = _open_sandbox(settings, resolve)
    else:
        opening = _open_with_playwright((settings, resolve, isolation), downloads, saved)
    async with opening as browser:
        yield browser


@asynccontextmanager
async def _open_sandbox(settings: BrowserSettings, resolve: EgressResolver) -> AsyncIterator[Browser]:
    from maniple.browser.drivers.sandbox.browser import SandboxBrowser

    if settings.sandbox_url is None:
        raise Unavailable("The sandbox's browser has no address.", "set `browser.sandbox_url`.")
    async with aclosing(SandboxBrowser(settings.sandbox_url, settings, resolve)) as browser:
        yield browser


@asynccontextmanager
async def _open_with_playwright(
    chosen: tuple[BrowserSettings, EgressResolver, ChromiumIsolation | None],
    downloads: Path | None,
    storage: BrowserStorage | None,
) -> AsyncIterator[Browser]:
    settings, resolve, isolation = chosen
    if settings.backend == "cdp":
        isolation = None  # nothing is started here
    async with AsyncExitStack() as stack:
        folder = downloads or await _temporary_folder(stack)
        fork_server = ForkServer()
        stack.callback(fork_server.close)
        resources = WindowResources(
            settings, resolve, IndexerObserver(), fork_server, folder, isolation=isolation
        )
        backend = await asyncio.to_thread(_backend_of, resources)
        yield await stack.enter_async_context(aclosing(PlaywrightBrowser(*backend, storage)))


_Backend = tuple[WindowResources, ContextSource, Callable[[], ContextSource] | None]
"""The resources, the source of shared contexts, and what opens a thread's own source."""


def _backend_of(resources: WindowResources) -> _Backend:
    """Return the parts of the backend that the settings name. Blocks on disk.

    Raises:
        Unavailable: there is none.
        ConfigError: an address in the settings is invalid.
    """
    settings, resolve = resources.settings, resources.resolve
    if settings.backend == "cdp":
        if settings.cdp_url is None:
            raise Unavailable("The Chromium to connect with has no address.", "set `browser.cdp_url`.")
        return resources, RemoteChromium(settings.cdp_url, settings.timeout_seconds), None
    executable = find_executable(settings)
    _check_isolation(resources)

    def open_own() -> ContextSource:
        return Chromium(settings, executable, resolve, resources.isolation)

    if settings.backend == "local":
        return resources, open_own(), open_own if settings.process_per_thread else None
    return _browser_use_backend(resources, executable)


def _check_isolation(resources: WindowResources) -> None:
    if resources.isolation is None:
        return
    if not resources.settings.headless:
        raise Unavailable(
            "As root, Chromium is isolated and cannot open a window.",
            "set `browser.headless: true`, or run as an ordinary user.",
        )
    resources.isolation.check()


def _browser_use_backend(resources: WindowResources, executable: Path) -> _Backend:
    from maniple.browser.drivers.browser_use.driver import (
        BrowserUseChromium,
        BrowserUseObserver,
        browser_use_actions,
    )

    environment = browser_use_environment(resources.settings)
    environment.check()
    settings, resolve = resources.settings, resources.resolve
    observer = BrowserUseObserver()

    def open_own() -> ContextSource:
        return BrowserUseChromium(
            settings, executable, resolve, observer, environment.python, resources.isolation
        )

    resources = replace(resources, observer=observer, overrides=browser_use_actions(observer))
    return resources, Chromium(settings, executable, resolve, resources.isolation), open_own


def browser_use_environment(settings: BrowserSettings) -> BrowserUseEnvironment:
    """Return the environment that the settings name, made or not."""
    folder = settings.browser_use_dir or user_cache_path("maniple", appauthor=False) / "browser-use"
    return BrowserUseEnvironment(folder.absolute())


async def _temporary_folder(stack: AsyncExitStack) -> Path:
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="maniple-"))  # readable by its owner alone
    stack.push_async_callback(asyncio.to_thread, shutil.rmtree, folder, ignore_errors=True)
    return folder


def _storage_in(folder: Path | None, settings: BrowserSettings) -> BrowserStorage | None:
    if not settings.keep_storage:
        return None
    if folder is None:
        raise ConfigError("browser.keep_storage needs a folder: open_browser(settings, storage=folder).")
    return BrowserStorage(folder)


def find_executable(settings: BrowserSettings, search_path: str | None = None) -> Path:
    """Return the configured Chromium, else Playwright's own, else one on the path.

    `search_path` replaces the environment's PATH. Raises `Unavailable` where there is none.
    """
    if settings.executable is not None:
        if settings.executable.is_file():
            return settings.executable
        raise Unavailable(
            f"`browser.executable` names {settings.executable}, which is no file.", "correct it."
        )
    if managed := next(_playwright_executables(settings.headless), None):
        return managed
    for name in (_HEADLESS_NAMES if settings.headless else ()) + _FULL_NAMES:
        if found := shutil.which(name, path=search_path):
            return Path(found)
    package = "chromium-headless-shell" if settings.headless else "chromium"
    raise Unavailable(
        "There is no Chromium.",
        f"apt-get install -y --no-install-recommends {package} (or `playwright install chromium`).",
    )


def _playwright_executables(headless: bool) -> Iterator[Path]:
    folder = user_cache_path("ms-playwright", appauthor=False)
    if headless:
        yield from sorted(folder.glob("chromium_headless_shell-*/*/*headless*shell"), reverse=True)
    yield from sorted(folder.glob("chromium-*/chrome-*/chrome"), reverse=True)
