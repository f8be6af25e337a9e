"""From settings to a browser."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from maniple.browser.backends import Places, open_backend
from maniple.browser.page import Browser
from maniple.browser.storage import Storage
from maniple.config import BrowserSettings
from maniple.config.fetch_settings import FetchSettings
from maniple.egress import AddressGuard, EgressResolver
from maniple.errors import BrowserError, ConfigError
from maniple.types import Unavailable


@asynccontextmanager
async def open_browser(
    settings: BrowserSettings,
    resolve: EgressResolver | None = None,
    *,
    downloads: Path | None = None,
    storage: Path | None = None,
) -> AsyncIterator[Browser]:
    """A browser for programs; no process starts before the first page.

    `resolve` says where connections go to, and that they go nowhere when it raises, whatever the settings
    name; without it they go to public addresses alone, and to the networks of `settings.allow_private`.
    `downloads` is the folder for files that pages give and `Aids.keep_file` does not take; without it they
    go with the browser. `storage` is the folder for what `browser.keep_storage` keeps of each thread.

    Raises:
        BrowserError: there is no browser; in words that say how to get one.
        ConfigError: an address or a network in the settings is none, or storage is to be kept nowhere.
    """
    async with open_browser_if_any(settings, resolve, downloads=downloads, storage=storage) as browser:
        if isinstance(browser, Unavailable):
            raise BrowserError(str(browser))
        yield browser


@asynccontextmanager
async def open_browser_if_any(
    settings: BrowserSettings,
    resolve: EgressResolver | None = None,
    *,
    downloads: Path | None = None,
    storage: Path | None = None,
) -> AsyncIterator[Browser | Unavailable]:
    """The browser as of `open_browser`, or why there is none."""
    if not settings.enabled:
        yield Unavailable("The browser is turned off.", "set `browser.enabled: true`.")
        return
    places = Places(downloads, _storage(settings, storage))
    async with open_backend(settings, _way(settings, resolve), places) as browser:
        yield browser


def _way(settings: BrowserSettings, resolve: EgressResolver | None) -> EgressResolver:
    if resolve is not None:
        return resolve
    return AddressGuard(FetchSettings(allow_private=settings.allow_private or ())).resolve


def _storage(settings: BrowserSettings, folder: Path | None) -> Storage | None:
    if not settings.keep_storage:
        return None
    if folder is None:
        raise ConfigError("browser.keep_storage needs a folder: open_browser(settings, storage=folder).")
    return Storage(folder)
